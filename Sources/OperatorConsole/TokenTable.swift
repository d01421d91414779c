/// `headroom token list`: the tokens, their scopes and when they were used.
public struct TokenTable: Sendable {
    /// A row of headroom.tokens. Instants are ISO 8601, UTC.
    public struct Token: Sendable, Equatable, Encodable {
        public let id: Int64
        public let name: String
        public let scopes: [String]
        public let state: String
        public let createdAt: String?
        public let createdBy: String
        public let expiresAt: String?
        public let lastUsedAt: String?
        public let revokedAt: String?
        public let revokedBy: String?

        public init(
            id: Int64,
            name: String,
            scopes: [String],
            state: String,
            createdAt: String?,
            createdBy: String,
            expiresAt: String?,
            lastUsedAt: String?,
            revokedAt: String?,
            revokedBy: String?
        ) {
            self.id = id
            self.name = name
            self.scopes = scopes
            self.state = state
            self.createdAt = createdAt
            self.createdBy = createdBy
            self.expiresAt = expiresAt
            self.lastUsedAt = lastUsedAt
            self.revokedAt = revokedAt
            self.revokedBy = revokedBy
        }

        /// Every token has the same names: a missing value is null.
        public func encode(to encoder: any Encoder) throws {
            let values: [String: FieldValue] = [
                "id": .integer(Int(id)), "name": .text(name), "scopes": .list(scopes), "state": .text(state),
                "created_at": FieldValue(createdAt), "created_by": .text(createdBy),
                "expires_at": FieldValue(expiresAt),
                "last_used_at": FieldValue(lastUsedAt), "revoked_at": FieldValue(revokedAt),
                "revoked_by": FieldValue(revokedBy),
            ]
            try values.encode(to: encoder)
        }
    }

    /// The tokens, the newest first.
    public let tokens: [Token]

    public init(_ tokens: [Token]) {
        self.tokens = tokens
    }

    /// - Parameter width: of the terminal; nil: none, so each row is a line.
    public func text(width: Int?) -> String {
        var table = TextTable([.right, .left, .left, .left, .left, .left, .left, .left])
        table.add("id", "name", "scopes", "state", "last used", "expires", "created", "by")
        for token in tokens {
            table.add(
                "\(token.id)",
                printable(token.name),
                token.scopes.joined(separator: " "),
                token.state,
                token.lastUsedAt ?? "-",
                token.expiresAt ?? "-",
                token.createdAt ?? "-",
                printable(token.createdBy)
            )
        }
        return table.records(width: width)
    }
}
