import Billing
import Postgres
import Usage

/// What stores sent, as operators look at it and have it applied again, as whoever logs in. Blocks; run it on a thread of
/// its own.
public struct BillingEventRegister: ~Copyable {
    public struct Entry: Sendable {
        public var source: String
        public var id: String
        /// In the store's words.
        public var type: String
        public var happenedAt: Instant
        public var receivedAt: Instant
        public var user: String?
        /// `applied`, `waiting`, `outdated`, `ignored`, `failed` or `forgotten`.
        public var outcome: String
        /// Of a failed one: what was wrong and what to do.
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

    /// What became of one that was read anew.
    public struct Replayed: Sendable {
        public var outcome: String
        public var problem: String?

        init(outcome: String, problem: String?) {
            self.outcome = outcome
            self.problem = problem
        }

        /// - Parameter answer: JSON, as `headroom.write_customer` returns it.
        init(answer: String) {
            let fields = (try? JSONValue(parsing: Array(answer.utf8))) ?? .null
            func text(_ name: String) -> String? {
                if case .string(let text)? = fields[name] { text } else { nil }
            }
            outcome = text("outcome") ?? "failed"
            problem = text("problem")
        }
    }

    private static let patience = Duration.seconds(30)
    private let connection: Connection

    /// - Throws: when the database cannot be reached.
    public init(databaseURL: String) throws(PostgresError) {
        connection = try Connection.connect(.command("events", databaseURL))
    }

    deinit {
        connection.close()
    }

    /// The newest `limit`, in the order in which they happened.
    public func list(onlyFailed: Bool, of user: UserID?, limit: Int) throws(PostgresError) -> [Entry] {
        var parameters = Parameters()
        parameters.append(bool: onlyFailed)
        parameters.append(text: user?.description)
        parameters.append(int64: Int64(limit))
        let result = try query(EmbeddedSQL.listBillingEvents, parameters)
        func text(_ row: Int, _ column: Int) -> String? {
            result.isNull(row, column) ? nil : result.text(row, column)
        }
        return try (0..<result.rowCount).map { row throws(PostgresError) in
            Entry(
                source: result.text(row, 0),
                id: result.text(row, 1),
                type: result.text(row, 2),
                happenedAt: Instant(microsecondsSince1970: try result.timestamp(row, 3)),
                receivedAt: Instant(microsecondsSince1970: try result.timestamp(row, 4)),
                user: text(row, 5),
                outcome: result.text(row, 6),
                problem: text(row, 7),
                attempts: Int(try result.int32(row, 8))
            )
        }
    }

    /// All that is kept of one, as JSON: indented, and in one line. Nil if there is no such event.
    public func show(_ name: Name) throws(PostgresError) -> (indented: String, compact: String)? {
        let result = try query(EmbeddedSQL.showBillingEvent, parameters(of: name))
        return result.rowCount == 0 ? nil : (result.text(0, 0), result.text(0, 1))
    }

    /// Which to read anew, oldest first.
    ///
    /// - Parameter name: of the only one; nil is all, or all that failed.
    public func names(_ name: Name?, onlyFailed: Bool) throws(PostgresError) -> [Name] {
        var parameters = Parameters()
        parameters.append(text: name?.source)
        parameters.append(text: name?.id)
        parameters.append(bool: onlyFailed)
        let result = try query(EmbeddedSQL.listReplayableEvents, parameters)
        return (0..<result.rowCount).map { Name(source: result.text($0, 0), id: result.text($0, 1)) }
    }

    /// What is kept of the store's own words, as JSON; nil when nothing is any more.
    public func payload(of name: Name) throws(PostgresError) -> String? {
        let result = try query(EmbeddedSQL.readEventPayload, parameters(of: name))
        return result.rowCount == 0 || result.isNull(0, 0) ? nil : result.text(0, 0)
    }

    /// Applies an event that was translated anew, in place of what it was taken for. Where it was applied before and could
    /// not be now, nothing changes.
    public func replay(_ event: BillingEvent) throws(PostgresError) -> Replayed {
        let ledger = BillingLedger(connection, deadline: .now + BillingEventRegister.patience)
        guard let answer = try ledger.replay(event) else {
            return Replayed(outcome: "failed", problem: "it was applied and could not be now; nothing was changed")
        }
        return Replayed(answer: answer)
    }

    private func parameters(of name: Name) -> Parameters {
        var parameters = Parameters()
        parameters.append(text: name.source)
        parameters.append(text: name.id)
        return parameters
    }

    private func query(_ sql: String, _ parameters: consuming Parameters) throws(PostgresError) -> QueryResult {
        try connection.query(sql, parameters, deadline: .now + BillingEventRegister.patience)
    }
}
