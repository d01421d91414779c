import Postgres
import Usage

/// The tokens as operators see them: makes, lists and revokes them, as whoever logs in. Blocks; run it on a thread of its
/// own.
public struct TokenRegister {
    public struct Entry: Sendable {
        public var id: Int64
        public var name: String
        /// Separated by spaces.
        public var scopes: String
        /// Nil where what is stored is no instant that can be shown; so are the other instants then.
        public var createdAt: Instant?
        public var createdBy: String
        public var expiresAt: Instant?
        public var revokedAt: Instant?
        public var revokedBy: String?
        public var lastUsedAt: Instant?
        /// `live`, `expired`, `revoked`, or `invalid`: the service refuses it for what is in its row.
        public var state: String
    }

    private static let patience = Duration.seconds(30)
    private let options: ConnectionOptions

    public init(databaseURL: String) {
        options = .command("token", databaseURL)
    }

    /// - Parameters:
    ///   - digest: SHA-256 of the token, 32 bytes.
    ///   - days: until it expires, by the database's clock; nil is never.
    /// - Returns: its number, and whether it is the first there ever was.
    public func create(
        name: String,
        scopes: [String],
        digest: [UInt8],
        expiresInDays days: Int?
    ) throws(PostgresError) -> (id: Int64, isFirst: Bool) {
        let connection = try Connection.connect(options)
        defer { connection.close() }
        var parameters = Parameters()
        parameters.append(text: name)
        parameters.appendTexts(count: scopes.count) { scopes[$0] }
        parameters.append(bytes: digest)
        parameters.append(int32: days.map { Int32($0) })
        let result = try connection.query(
            EmbeddedSQL.createToken,
            parameters,
            deadline: .now + TokenRegister.patience
        )
        return (try result.int64(0, 0), try result.bool(0, 1))
    }

    /// - Returns: whom the token was for.
    public func revoke(_ id: Int64) throws(PostgresError) -> String {
        let connection = try Connection.connect(options)
        defer { connection.close() }
        var parameters = Parameters()
        parameters.append(int64: id)
        let result = try connection.query(
            EmbeddedSQL.revokeToken,
            parameters,
            deadline: .now + TokenRegister.patience
        )
        return result.text(0, 0)
    }

    /// All there ever were, the newest first.
    public func list() throws(PostgresError) -> [Entry] {
        let connection = try Connection.connect(options)
        defer { connection.close() }
        let result = try connection.query(EmbeddedSQL.listTokens, deadline: .now + TokenRegister.patience)
        func column(_ name: String) -> StoredColumn { StoredColumn("headroom.tokens", name) }
        return try (0..<result.rowCount).map { row throws(PostgresError) in
            Entry(
                id: try result.int64(row, 0),
                name: result.text(row, 1),
                scopes: result.text(row, 2),
                createdAt: try result.instantOrNil(row, 3, of: column("created_at")),
                createdBy: result.text(row, 4),
                expiresAt: try result.instantOrNil(row, 5, of: column("expires_at")),
                revokedAt: try result.instantOrNil(row, 6, of: column("revoked_at")),
                revokedBy: result.isNull(row, 7) ? nil : result.text(row, 7),
                lastUsedAt: try result.instantOrNil(row, 8, of: column("last_used_at")),
                state: result.text(row, 9)
            )
        }
    }
}
