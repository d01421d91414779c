import Postgres
import Usage

/// Reads what is on record about a user. Blocks; run it on a thread of its own.
public struct AuditTrailReader {
    public struct Event: Sendable, Equatable {
        public var at: Instant
        public var what: String
        public var detail: String?
        public var actor: String?
        public var reason: String?

        package init(at: Instant, what: String, detail: String?, actor: String?, reason: String?) {
            self.at = at
            self.what = what
            self.detail = detail
            self.actor = actor
            self.reason = reason
        }
    }

    private let options: ConnectionOptions

    public init(databaseURL: String) {
        options = .command("audit", databaseURL)
    }

    /// The newest `limit` events, in the order in which they happened.
    public func events(of user: UserID, limit: Int) throws(PostgresError) -> [Event] {
        let connection = try Connection.connect(options)
        defer { connection.close() }
        var parameters = Parameters()
        parameters.append(uuid: (user.high, user.low))
        parameters.append(int64: Int64(limit))
        let result = try connection.query(EmbeddedSQL.readAuditTrail, parameters, deadline: .now + .seconds(30))
        return try (0..<result.rowCount).map { row throws(PostgresError) in try Event(result, row) }
    }
}

extension AuditTrailReader.Event {
    init(_ result: QueryResult, _ row: Int) throws(PostgresError) {
        self.init(
            at: try result.instant(row, 0, of: StoredColumn("headroom.audit_log", "at")),
            what: result.textOrNil(row, 1) ?? "",
            detail: result.textOrNil(row, 2),
            actor: result.textOrNil(row, 3),
            reason: result.textOrNil(row, 4)
        )
    }
}
