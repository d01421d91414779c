import LineProtocol

/// When a token is required.
public enum Authentication: String, Sendable, CaseIterable {
    /// A token is required once one was ever created. Revoking the last one does not open the service again.
    case auto
    case required
    case off
}

/// The rules of access at one moment. Each event loop has its own reference to it.
package final class AccessPolicy: Sendable {
    package let isRequired: Bool
    let tokens: TokenList
    /// False until the tokens are read for the first time. If a token is required, no connection is accepted before.
    let hasReadTokens: Bool

    init(isRequired: Bool, tokens: TokenList, hasReadTokens: Bool = true) {
        self.isRequired = isRequired
        self.tokens = tokens
        self.hasReadTokens = hasReadTokens
    }

    /// Access without a token.
    package static let open = AccessPolicy(isRequired: false, tokens: TokenList())

    /// The permissions of a peer without a token.
    package var permissionsWithoutToken: Permissions { isRequired ? .anonymous : .all }

    /// The identity of the credentials. A token limits its connection also where none is required.
    func authenticate(_ credentials: Credentials, at now: ContinuousClock.Instant) -> Result<Identity, ReplyError> {
        if !isRequired, tokens.isEmpty { return .failure(.noTokenExists) }
        if !hasReadTokens { return .failure(.tokensUnread) }
        return tokens.identity(of: credentials, at: now).map { .success($0) } ?? .failure(.wrongToken)
    }

    /// - Returns: nil if the token is no longer live.
    package func identity(ofToken tokenID: Int64) -> Identity? { tokens.identity(ofToken: tokenID) }
}
