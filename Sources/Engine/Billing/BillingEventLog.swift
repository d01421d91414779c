import Billing
import Postgres
import Usage

/// Lists, shows and replays recorded billing events, with the rights of the database login. It blocks; run it on a
/// thread of its own.
public struct BillingEventLog: ~Copyable {
    public struct Entry: Sendable {
        public var source: String
        public var id: String
        /// The type, as the store names it.
        public var type: String
        public var happenedAt: Instant
        public var receivedAt: Instant
        public var user: String?
        /// `applied`, `waiting`, `outdated`, `ignored`, `failed` or `forgotten`.
        public var outcome: String
        /// What is wrong with a failed event, and what to do; nil for others.
        public var problem: String?
        public var attempts: Int
    }

    public struct Name: Sendable, Equatable {
        public var source: String
        public var id: String

        public init(source: String, id: String) {
            self.source = source
            self.id = id
        }
    }

    /// The outcome of a replay.
    public struct ReplayResult: Sendable, Equatable {
        public var outcome: String
        public var problem: String?
    }

    private static let timeout = Duration.seconds(30)
    private let connection: DatabaseConnection

    /// - Throws: if the database cannot be reached.
    public init(database: DatabaseTopology) throws(PostgresError) {
        connection = try DatabaseConnection.connect(.command("events", database))
    }

    deinit {
        connection.close()
    }

    /// The newest `limit` events, in the order in which they happened.
    public func list(onlyFailed: Bool, of user: UserID?, limit: Int) throws(PostgresError) -> [Entry] {
        var parameters = Parameters()
        parameters.append(bool: onlyFailed)
        parameters.append(text: user?.description)
        parameters.append(int64: Int64(limit))
        let result = try query(EmbeddedSQL.listBillingEvents, parameters)
        return try result.rows { row throws(PostgresError) in
            Entry(
                source: try row.text("source"),
                id: try row.text("id"),
                type: try row.text("type"),
                happenedAt: try row.instant("happened_at"),
                receivedAt: try row.instant("received_at"),
                user: try row.textOrNil("user_id"),
                outcome: try row.text("outcome"),
                problem: try row.textOrNil("problem"),
                attempts: try row.int32("attempts")
            )
        }
    }

    /// An event as JSON, indented and in one line; nil if there is no such event.
    public func show(_ name: Name) throws(PostgresError) -> (indented: String, compact: String)? {
        let result = try query(EmbeddedSQL.showBillingEvent, name.parameters)
        guard result.rowCount > 0 else { return nil }
        return (try result.firstRow.text("pretty"), try result.firstRow.text("compact"))
    }

    /// The names of the events to replay: links first, then the oldest.
    ///
    /// - Parameter name: a single event; nil means all events, or all that failed.
    /// - Throws: also if a replay would run somebody else's triggers with the rights of a superuser.
    public func names(_ name: Name?, onlyFailed: Bool) throws(PostgresError) -> [Name] {
        try connection.execute(EmbeddedSQL.refuseUntrustedTable, deadline: .now + BillingEventLog.timeout)
        var parameters = Parameters()
        parameters.append(text: name?.source)
        parameters.append(text: name?.id)
        parameters.append(bool: onlyFailed)
        let result = try query(EmbeddedSQL.listReplayableEvents, parameters)
        return try result.rows { row throws(PostgresError) in
            Name(source: try row.text("source"), id: try row.text("id"))
        }
    }

    /// Applies a recorded event again, with its payload translated anew. If it was applied before and cannot be applied
    /// now, nothing changes.
    public func replay(
        _ name: Name,
        translate: (_ source: String, _ payload: [UInt8]) throws(BillingError) -> BillingEvent
    ) throws(PostgresError) -> ReplayResult {
        try BillingLedger(connection, deadline: .now + BillingEventLog.timeout)
            .replay(name, translate: translate)
            ?? .failed("there is no such event")
    }

    /// Links a transaction, or a customer by the store's id, with a user (`BillingLedger`).
    ///
    /// - Parameter reason: the reason for the audit log.
    /// - Throws: also if it would run somebody else's triggers with the rights of a superuser.
    public func link(
        _ source: String,
        _ name: String,
        to user: UserID,
        reason: String?
    ) throws(PostgresError) -> CustomerLinkResult {
        let deadline = ContinuousClock.now + BillingEventLog.timeout
        try connection.execute(EmbeddedSQL.refuseUntrustedTable, deadline: deadline)
        let author = reason.map { ChangeAuthor(actor: "", reason: $0) }
        return try BillingLedger(connection, deadline: deadline, author: author).link(source, name, to: user)
    }

    private func query(_ sql: String, _ parameters: consuming Parameters) throws(PostgresError) -> QueryResult {
        try connection.query(sql, parameters, deadline: .now + BillingEventLog.timeout)
    }
}
