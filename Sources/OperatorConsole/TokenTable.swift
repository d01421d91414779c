/// `headroom token list`: who may ask, and what.
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

        private enum CodingKeys: String, CodingKey {
            case id, name, scopes, state
            case createdAt = "created_at"
            case createdBy = "created_by"
            case expiresAt = "expires_at"
            case lastUsedAt = "last_used_at"
            case revokedAt = "revoked_at"
            case revokedBy = "revoked_by"
        }

        /// With a null where there is nothing: every token has the same names.
        public func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(id, forKey: .id)
            try container.encode(name, forKey: .name)
            try container.encode(scopes, forKey: .scopes)
            try container.encode(state, forKey: .state)
            try container.encode(createdAt, forKey: .createdAt)
            try container.encode(createdBy, forKey: .createdBy)
            try container.encode(expiresAt, forKey: .expiresAt)
            try container.encode(lastUsedAt, forKey: .lastUsedAt)
            try container.encode(revokedAt, forKey: .revokedAt)
            try container.encode(revokedBy, forKey: .revokedBy)
        }
    }

    /// The newest first.
    public let tokens: [Token]

    public init(_ tokens: [Token]) {
        self.tokens = tokens
    }

    public var text: String {
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
        return table.lines.joined(separator: "\n")
    }
}
