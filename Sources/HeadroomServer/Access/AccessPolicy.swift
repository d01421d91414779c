import LineProtocol

/// When a token is required.
public enum Authentication: String, Sendable, CaseIterable {
    /// As soon as one was ever created: revoking the last one locks, and never opens.
    case auto
    case required
    case off
}

/// Who may ask, at one moment. Each event loop has its own reference to it.
package final class AccessPolicy: Sendable {
    package let isRequired: Bool
    let tokens: TokenList
    /// False until the tokens are read for the first time. If a token is required, no connection is admitted before.
    let isKnown: Bool

    init(isRequired: Bool, tokens: TokenList, isKnown: Bool = true) {
        self.isRequired = isRequired
        self.tokens = tokens
        self.isKnown = isKnown
    }

    /// For everybody, without a token.
    static let open = AccessPolicy(isRequired: false, tokens: TokenList())

    /// Of a peer that has brought no token.
    package var permissionsWithoutToken: Permissions { isRequired ? .anonymous : .all }

    /// Whose token that is. What a token may do holds also where none is required: who brings one wants to be held to it.
    func authenticate(_ credentials: Credentials, at now: ContinuousClock.Instant) -> Result<Identity, ReplyError> {
        if !isRequired, tokens.isEmpty { return .failure(.noTokensHere) }
        if !isKnown { return .failure(.tokensUnread) }
        return tokens.identity(of: credentials, at: now).map { .success($0) } ?? .failure(.wrongToken)
    }

    /// By the token's number; nil when it is not live any more.
    package func identity(ofToken tokenID: Int64) -> Identity? { tokens.identity(tokenID) }
}
