import LineProtocol

/// The token that a peer has authenticated with, and its permissions.
package struct Identity: Sendable, Equatable {
    package var tokenID: Int64
    package var name: String
    package var permissions: Permissions

    /// The name in the audit log of changes that are made with this token.
    package var actor: String { "token:\(name)" }
}

extension ReplyError {
    /// The error is the same whatever was wrong, so that a guess learns nothing, not even the names of tokens.
    static let wrongToken = ReplyError(
        code: .noAuth,
        text: "this is not a live token; headroom token list shows names and states, AUTH takes [name] and token"
    )

    static let noTokenExists = ReplyError(
        code: .badArg,
        text: "no token is required, and none exists; omit AUTH, or create one with headroom token create"
    )

    /// The token may be valid, so a client should retry with it.
    static let tokensUnread = ReplyError(
        code: .unavailable,
        retryAfterMilliseconds: 1_000,
        text: "the tokens are not read from the database yet; GET /readyz has the reason"
    )

    package static let tokenEnded = ReplyError(
        code: .noAuth,
        text: "the token of this connection was revoked, has expired or was changed; connect again; closing"
    )

    package static let tokenIsRequired = ReplyError(
        code: .noAuth,
        text: "a token is now required; connect again and send AUTH <token>; closing"
    )

    static let tooManyConnectionsOfToken = ReplyError(
        code: .overloaded,
        retryAfterMilliseconds: 1_000,
        text: "too many connections with this token; close some, or raise connections-per-token-maximum"
    )
}
