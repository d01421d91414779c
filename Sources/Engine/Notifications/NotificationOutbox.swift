import Logging
import Postgres
import Synchronization
import Usage

/// The service's side of the table `headroom.notifications`: it records notifications, and gives them to the one
/// session that delivers. It has connections of its own, so that no message waits for it.
package final class NotificationOutbox: Sendable {
    /// A notification whose next attempt is due.
    package struct Due: Sendable, Equatable {
        package var id: String
        package var body: String
        /// The number of attempts that were made before.
        package var attempts: Int
        /// The present time by the database's clock, in seconds since 1970.
        package var sentAt: Int64

        package init(id: String, body: String, attempts: Int, sentAt: Int64) {
            (self.id, self.body, self.attempts, self.sentAt) = (id, body, attempts, sentAt)
        }
    }

    /// The result of an attempt.
    package struct Attempt: Sendable, Equatable {
        package var id: String
        /// The number of attempts that were made before this one.
        package var attemptsBefore: Int
        /// The reason why it failed; nil if the notification was delivered.
        package var problem: String?
        /// The time until the next attempt; nil if there is none.
        package var delay: Duration?

        package init(id: String, attemptsBefore: Int, problem: String?, delay: Duration?) {
            (self.id, self.attemptsBefore, self.problem, self.delay) = (id, attemptsBefore, problem, delay)
        }
    }

    package struct Backlog: Sendable, Equatable {
        /// The number of pending notifications, at most `backlogMaximum`.
        package var pending: Int
        package var oldestSeconds: Int64
    }

    /// The most users in one statement. They take at most some 100 milliseconds of the database's time.
    package static let usersMaximum = 256
    package static let backlogMaximum = 100_000
    private static let timeout = Duration.seconds(5)
    /// The time after which a range of pages of message_usage is followed by a smaller one, so that its snapshot does
    /// not keep old versions of rows for long.
    private static let slowRange = Duration.milliseconds(300)
    private static let rangePages: ClosedRange<Int64> = 16...512
    private static let lastPage: Int64 = 4_294_967_294
    private static let pausePerWork = 3

    /// The session of a login that may not deliver, but has the lock, so that nothing is delivered; nil if there is
    /// none. It is that of the last `due`.
    package var stranger: String? { lastStranger.withLock { $0 } }
    private let lastStranger = Mutex<String?>(nil)
    private let sessions: SessionPool
    private let readers: SessionPool

    package init(_ configuration: EngineConfiguration, logger: Logger) {
        // There is one session, which has the lock for delivering.
        sessions = SessionPool(name: "notifications", configuration, readOnly: false, logger: logger)
        readers = SessionPool(name: "sweep", options: configuration.readerOptions, logger: logger)
    }

    /// Runs until `close()` was called and what has begun is done.
    package func run() async {
        async let reading: Void = readers.run()
        await sessions.run()
        await reading
    }

    package func close() {
        sessions.close()
        readers.close()
    }

    /// Records the notifications of users who are at a tier now.
    ///
    /// - Returns: the number of new notifications.
    package func record(_ users: [UserID]) async throws(SessionPool.Failure) -> Int {
        try await perform { connection, deadline throws(PostgresError) in
            var parameters = Parameters(capacity: 64 + users.count * 20)
            parameters.appendUUIDs(count: users.count) { (users[$0].high, users[$0].low) }
            let result = try connection.query(EmbeddedSQL.recordNotifications, parameters, deadline: deadline)
            return Int(try result.firstRow.int64("recorded"))
        }
    }

    /// The notifications that are due; nil while another session delivers, of this service or of another instance.
    package func due(atMost maximum: Int) async throws(SessionPool.Failure) -> [Due]? {
        try await perform { connection, deadline throws(PostgresError) in
            let lock = try connection.query(EmbeddedSQL.lockDelivery, deadline: deadline).firstRow
            let stranger = try lock.textOrNil("stranger")
            self.lastStranger.withLock { $0 = stranger }
            guard try lock.bool("delivers") else { return nil }
            var parameters = Parameters()
            parameters.append(int32: Int32(maximum))
            let result = try connection.query(EmbeddedSQL.readDueNotifications, parameters, deadline: deadline)
            return try result.rows { row throws(PostgresError) in
                Due(
                    id: try row.text("id"),
                    body: try row.text("body"),
                    attempts: try row.int32("attempts"),
                    sentAt: try row.int64("sent_at")
                )
            }
        }
    }

    package func write(_ attempts: [Attempt]) async throws(SessionPool.Failure) {
        guard !attempts.isEmpty else { return }
        try await perform { connection, deadline throws(PostgresError) in
            var parameters = Parameters()
            parameters.appendTexts(count: attempts.count) { attempts[$0].id }
            parameters.appendInt32s(count: attempts.count) { Int32(clamping: attempts[$0].attemptsBefore) }
            parameters.appendTexts(count: attempts.count) { attempts[$0].problem }
            parameters.appendNullableInt64s(count: attempts.count) { attempts[$0].delay?.milliseconds }
            _ = try connection.query(EmbeddedSQL.writeAttempts, parameters, deadline: deadline)
        }
    }

    package func backlog() async throws(SessionPool.Failure) -> Backlog {
        try await perform { connection, deadline throws(PostgresError) in
            var parameters = Parameters()
            parameters.append(int32: Int32(NotificationOutbox.backlogMaximum))
            let row = try connection.query(EmbeddedSQL.readNotificationBacklog, parameters, deadline: deadline).firstRow
            return Backlog(pending: Int(try row.int64("pending")), oldestSeconds: try row.int64("oldest_seconds"))
        }
    }

    private func perform<Value: Sendable>(
        _ work: @escaping @Sendable (DatabaseConnection, ContinuousClock.Instant) throws(PostgresError) -> Value
    ) async throws(SessionPool.Failure) -> Value {
        let deadline = ContinuousClock.now + NotificationOutbox.timeout
        return try await sessions.perform(by: deadline) { connection throws(PostgresError) in
            try work(connection, deadline)
        }
    }

    // MARK: The sweep

    /// A table whose rows have users at a tier: the column of its size, and the query of a range of its pages.
    private typealias SweptTable = (pages: StaticString, query: String)

    private static let sweptTables: [SweptTable] = [
        ("usage_pages", EmbeddedSQL.readCrossedPageRange), ("part_pages", EmbeddedSQL.readCrossedPartsPageRange),
    ]

    /// Records the notifications of all users who are at a tier. It finds those of messages that SQL functions counted,
    /// of changes by hand, and of an instance that ended before it recorded them.
    ///
    /// It reads the tables by ranges of pages, each in a transaction of its own, and pauses three times as long as
    /// each.
    ///
    /// - Returns: the number of new notifications.
    package func sweep() async throws -> Int {
        var recorded = 0
        for table in NotificationOutbox.sweptTables { recorded += try await sweep(table) }
        return recorded
    }

    private func sweep(_ table: SweptTable) async throws -> Int {
        let pages = try await size(of: table)
        var (next, size, recorded) = (Int64(0), NotificationOutbox.rangePages.upperBound, 0)
        while true {
            // The last range has no end, because the table grows meanwhile.
            let isLast = next + size >= pages
            let range = next..<(isLast ? NotificationOutbox.lastPage : next + size)
            let started = ContinuousClock.now
            let users = try await crossedUsers(in: range, of: table)
            let duration = ContinuousClock.now - started
            for start in stride(from: 0, to: users.count, by: NotificationOutbox.usersMaximum) {
                recorded += try await record(Array(users[start...].prefix(NotificationOutbox.usersMaximum)))
            }
            if isLast { return recorded }
            next = range.upperBound
            if duration > NotificationOutbox.slowRange {
                size = max(size / 2, NotificationOutbox.rangePages.lowerBound)
            } else if duration < NotificationOutbox.slowRange / 4 {
                size = min(size * 2, NotificationOutbox.rangePages.upperBound)
            }
            try await Task.sleep(for: (ContinuousClock.now - started) * NotificationOutbox.pausePerWork)
        }
    }

    private func size(of table: SweptTable) async throws(SessionPool.Failure) -> Int64 {
        try await read { connection, deadline throws(PostgresError) in
            try connection.query(EmbeddedSQL.readSweptSizes, deadline: deadline).firstRow.int64(table.pages)
        }
    }

    private func crossedUsers(
        in pages: Range<Int64>,
        of table: SweptTable
    ) async throws(SessionPool.Failure) -> [UserID] {
        try await read { connection, deadline throws(PostgresError) in
            var parameters = Parameters()
            parameters.append(int64: pages.lowerBound)
            parameters.append(int64: pages.upperBound)
            let result = try connection.query(table.query, parameters, deadline: deadline)
            return try result.rows { row throws(PostgresError) in try row.user("user_id") }
        }
    }

    private func read<Value: Sendable>(
        _ work: @escaping @Sendable (DatabaseConnection, ContinuousClock.Instant) throws(PostgresError) -> Value
    ) async throws(SessionPool.Failure) -> Value {
        // A statement may take as long as a report.
        let deadline = ContinuousClock.now + .seconds(60)
        return try await readers.perform(by: deadline) { connection throws(PostgresError) in
            try work(connection, deadline)
        }
    }
}
