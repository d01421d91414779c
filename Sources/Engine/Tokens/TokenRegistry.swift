import Postgres
import Usage

/// Creates, lists and revokes tokens, with the rights of the database login. It blocks; run it on a thread of its own.
public struct TokenRegistry {
    public struct Entry: Sendable {
        public var id: Int64
        public var name: String
        /// The scopes, separated by spaces.
        public var scopes: String
        /// The time of its creation. It is nil if the stored value is out of range, as are the other instants.
        public var createdAt: Instant?
        public var createdBy: String
        public var expiresAt: Instant?
        public var revokedAt: Instant?
        public var revokedBy: String?
        public var lastUsedAt: Instant?
        /// `live`, `expired`, `revoked`, or `invalid`: the row violates a check, and the service refuses the token.
        public var state: String
    }

    private let options: ConnectionOptions

    public init(database: DatabaseTopology) {
        options = .command("token", database)
    }

    /// - Parameters:
    ///   - digest: the SHA-256 of the token, 32 bytes.
    ///   - days: the days until it expires, by the database's clock; nil means that it never does.
    /// - Returns: the token's id, and whether it is the first token ever.
    public func create(
        name: String,
        scopes: [String],
        digest: [UInt8],
        expiresInDays days: Int?
    ) throws(PostgresError) -> (id: Int64, isFirst: Bool) {
        var parameters = Parameters()
        parameters.append(text: name)
        parameters.appendTexts(count: scopes.count) { scopes[$0] }
        parameters.append(bytes: digest)
        parameters.append(int32: days.map { Int32($0) })
        let row = try options.query(EmbeddedSQL.createToken, parameters).firstRow
        return (try row.int64("id"), try row.bool("is_first"))
    }

    /// - Returns: the token's name.
    public func revoke(_ id: Int64) throws(PostgresError) -> String {
        var parameters = Parameters()
        parameters.append(int64: id)
        return try options.query(EmbeddedSQL.revokeToken, parameters).firstRow.text("name")
    }

    /// All tokens, newest first.
    public func list() throws(PostgresError) -> [Entry] {
        let table = "headroom.tokens"
        return try options.query(EmbeddedSQL.listTokens).rows { row throws(PostgresError) in
            Entry(
                id: try row.int64("id"),
                name: try row.text("name"),
                scopes: try row.text("scopes"),
                createdAt: try row.instantOrNil("created_at", of: table),
                createdBy: try row.text("created_by"),
                expiresAt: try row.instantOrNil("expires_at", of: table),
                revokedAt: try row.instantOrNil("revoked_at", of: table),
                revokedBy: try row.textOrNil("revoked_by"),
                lastUsedAt: try row.instantOrNil("last_used_at", of: table),
                state: try row.text("state")
            )
        }
    }
}
