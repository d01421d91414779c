import LineProtocol

/// Whose token a peer brought, and what it is good for.
package struct Identity: Sendable, Equatable {
    package var tokenID: Int64
    package var name: String
    package var permissions: Permissions

    /// What the audit log calls who made a change with this token.
    package var actor: String { "token:\(name)" }
}

extension ReplyError {
    /// The same whatever was wrong: who guesses learns nothing, not even which names there are.
    static let wrongToken = ReplyError(
        code: .noAuth,
        text: "no live token is that; headroom token list shows names and states, AUTH takes [name] and token"
    )

    static let noTokensHere = ReplyError(
        code: .badArg,
        text: "no token is required here, and there is none; leave AUTH out, or make one with headroom token create"
    )

    /// The token may be a good one, so a client is not to give it up.
    static let tokensUnread = ReplyError(
        code: .unavailable,
        retryAfterMilliseconds: 1_000,
        text: "the tokens were not read from the database yet; GET /readyz has the reason"
    )

    static let tokenEnded = ReplyError(
        code: .noAuth,
        text: "the token of this connection was revoked, has expired or was changed; connect again; closing"
    )

    static let tokenRequiredNow = ReplyError(
        code: .noAuth,
        text: "a token is required now; connect again and send AUTH <token>; closing"
    )

    static let tooManyOfToken = ReplyError(
        code: .overloaded,
        retryAfterMilliseconds: 1_000,
        text: "too many connections of this token; close some or raise connections-per-token-maximum"
    )
}
