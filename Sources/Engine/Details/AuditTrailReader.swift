import Postgres
import Usage

/// Reads the audit trail of a user. It blocks; run it on a thread of its own.
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

    public init(database: DatabaseTopology) {
        options = .command("audit", database)
    }

    /// The newest `limit` events, in the order in which they happened.
    public func events(of user: UserID, limit: Int) throws(PostgresError) -> [Event] {
        var parameters = Parameters()
        parameters.append(uuid: (user.high, user.low))
        parameters.append(int64: Int64(limit))
        return try options.query(EmbeddedSQL.readAuditTrail, parameters).rows { row throws(PostgresError) in
            try Event(row)
        }
    }
}

extension AuditTrailReader.Event {
    init(_ row: ResultRow) throws(PostgresError) {
        self.init(
            at: try row.instant("at", of: "headroom.audit_log"),
            what: try row.text("action"),
            detail: try row.textOrNil("detail"),
            actor: try row.textOrNil("actor"),
            reason: try row.textOrNil("reason")
        )
    }
}
