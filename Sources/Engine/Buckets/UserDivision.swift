import Postgres

/// Divides the users of a database into buckets, part by part, while messages are counted.
///
/// Each step moves the users of some parts (`headroom.divide_users`) and holds up all counting for as long as it takes.
/// So steps are short: the next one has more parts or fewer, depending on how long the last one took. A division that
/// was interrupted goes on where it was. docs/scaling.md describes it for operators.
public struct UserDivision: Sendable {
    /// How far a division has come.
    public struct Progress: Sendable {
        /// Parts of the users' hashes, of `partsMaximum`.
        public var parts: Int
        public var rows: Int
        /// The longest step: for so long nothing was counted.
        public var longestStep: Duration
    }

    /// What a division will do.
    public struct Plan: Sendable {
        /// How many buckets there are now.
        public var buckets: Int
        /// Parts that have moved already.
        public var parts: Int
        public var tables: [Table]
    }

    /// A table whose rows are divided.
    public struct Table: Sendable {
        public var name: String
        /// As PostgreSQL estimates them.
        public var rows: Int
        /// The index by which users are found meanwhile, in the table's schema.
        fileprivate var partIndex: String
        fileprivate var hasIndex: Bool
        /// False if its creation was interrupted.
        fileprivate var hasValidIndex: Bool
    }

    /// Why a division is not begun.
    public enum Refusal: Error, Sendable {
        /// The database is divided into another number of buckets already, which cannot be changed.
        case hasOtherBuckets(Int)
    }

    public static let partsMaximum = BucketMap.movedMaximum
    /// Measured beside a load on two cores, pauses included. For estimates.
    public static let usualRowsPerSecond = 20_000
    /// How long a step should take.
    private static let stepDuration = Duration.milliseconds(100)
    /// How long a step waits for a lock, for example of somebody's open transaction. Messages wait behind it.
    private static let lockTimeout = Duration.milliseconds(250)
    /// How often in a row a transaction may fail to get its locks.
    private static let attemptsMaximum = 240

    private let database: DatabaseTopology
    private let buckets: Int

    /// - Parameter buckets: a power of two from 2 to 1024.
    public init(_ database: DatabaseTopology, into buckets: Int) {
        self.database = database
        self.buckets = buckets
    }

    /// What `run` would do. Changes nothing. Blocks.
    public func plan() throws -> Plan {
        let connection = try connect()
        defer { connection.close() }
        let map = try map(connection)
        return Plan(
            buckets: map.buckets.count,
            parts: map.isSingle ? 0 : map.moved,
            tables: try tables(connection)
        )
    }

    /// Divides the database, or does nothing if it is divided. Blocks.
    ///
    /// - Parameter report: called before the first step and after each; not at all if the database is divided.
    public func run(_ report: (Progress) -> Void) throws {
        let connection = try connect()
        defer { connection.close() }
        var map = try map(connection)
        if map.isSingle {
            try inTransaction(connection, EmbeddedSQL.beginDivision, Int32(buckets))
            map = try connection.currentBuckets(deadline: .now + .seconds(30))
        }
        if !map.isSettled {
            try createIndexes(connection)
            try moveUsers(connection, from: map.moved, report)
        }
        try inTransaction(connection, EmbeddedSQL.endDivision)
        try dropIndexes(connection)
    }

    private func connect() throws(PostgresError) -> Connection {
        try Connection.connect(.migration(database))
    }

    private func map(_ connection: Connection) throws -> BucketMap {
        let map = try connection.currentBuckets(deadline: .now + .seconds(30))
        guard map.isSingle || map.buckets.count == buckets else { throw Refusal.hasOtherBuckets(map.buckets.count) }
        return map
    }

    private func moveUsers(_ connection: Connection, from first: Int, _ report: (Progress) -> Void) throws {
        var progress = Progress(parts: first, rows: 0, longestStep: .zero)
        report(progress)
        var size = 1
        while progress.parts < UserDivision.partsMaximum {
            let next = min(progress.parts + size, UserDivision.partsMaximum)
            let (moved, duration) = try inTransaction(
                connection,
                EmbeddedSQL.divideUsers,
                Int32(next),
                asOwner: true
            )
            progress.rows += Int(try moved.int64(0, 0))
            progress.parts = next
            progress.longestStep = max(progress.longestStep, duration)
            report(progress)
            size = UserDivision.nextSize(after: size, took: duration)
            // Messages that have waited are counted before the next step.
            pause(duration)
        }
    }

    /// Twice as many parts at most, so that one quick step does not make the next one long.
    static func nextSize(after size: Int, took duration: Duration) -> Int {
        if duration > stepDuration { return max(1, size / 2) }
        return duration * 2 < stepDuration ? min(size * 2, partsMaximum) : size
    }

    private func pause(_ duration: Duration) {
        _ = WakePipe().sleep(orUntilReadable: -1, until: .now + duration)
    }

    /// Executes a statement with the rights of a migration, again while somebody else has a lock that it needs.
    ///
    /// - Returns: its result, and how long the transaction took that was committed.
    @discardableResult
    private func inTransaction(
        _ connection: Connection,
        _ statement: String,
        _ argument: Int32? = nil,
        asOwner: Bool = false
    ) throws(PostgresError) -> (QueryResult, Duration) {
        var attempts = 0
        while true {
            let begun = ContinuousClock.now
            do throws(PostgresError) {
                let result = try attempt(connection, statement, argument, asOwner: asOwner)
                return (result, ContinuousClock.now - begun)
            } catch {
                attempts += 1
                guard error.isTransient, attempts < UserDivision.attemptsMaximum else { throw error }
                pause(UserDivision.stepDuration)
            }
        }
    }

    private func attempt(
        _ connection: Connection,
        _ statement: String,
        _ argument: Int32?,
        asOwner: Bool
    ) throws(PostgresError) -> QueryResult {
        let deadline = ContinuousClock.now + .seconds(3_600)
        do throws(PostgresError) {
            try connection.execute(
                """
                begin;
                set local statement_timeout = 0;
                set local lock_timeout = \(UserDivision.lockTimeout.milliseconds);
                \(EmbeddedSQL.refuseUntrustedTable)
                \(EmbeddedSQL.becomeOwner)
                \(asOwner ? "set local role headroom_owner;" : "")
                """,
                deadline: deadline
            )
            var parameters = Parameters()
            if let argument { parameters.append(int32: argument) }
            let result = try connection.query(statement, parameters, deadline: deadline)
            try connection.execute("set local role none;\n\(EmbeddedSQL.resignOwner)\ncommit", deadline: deadline)
            return result
        } catch {
            try connection.rollBack(deadline: .now + .seconds(30))
            throw error
        }
    }

    // MARK: Tables

    private func tables(_ connection: Connection) throws(PostgresError) -> [Table] {
        let result = try connection.query(EmbeddedSQL.readDividedTables, deadline: .now + .seconds(30))
        var tables: [Table] = []
        for row in 0..<result.rowCount {
            tables.append(
                Table(
                    name: result.text(row, 0),
                    rows: Int(try result.int64(row, 1)),
                    partIndex: result.text(row, 2),
                    hasIndex: try result.bool(row, 3),
                    hasValidIndex: try result.bool(row, 4)
                )
            )
        }
        return tables
    }

    /// Without blocking anybody, so each outside a transaction.
    private func createIndexes(_ connection: Connection) throws(PostgresError) {
        for table in try tables(connection) where !table.hasValidIndex {
            if table.hasIndex { try dropIndex(of: table, connection) }
            try connection.execute(
                "create index concurrently \(table.partIndex) on \(table.name) (headroom.part_of(user_id))",
                deadline: .now + .seconds(86_400)
            )
        }
    }

    private func dropIndexes(_ connection: Connection) throws(PostgresError) {
        for table in try tables(connection) where table.hasIndex { try dropIndex(of: table, connection) }
    }

    private func dropIndex(of table: Table, _ connection: Connection) throws(PostgresError) {
        let schema = table.name.prefix { $0 != "." }
        try connection.execute(
            "drop index concurrently \(schema).\(table.partIndex)",
            deadline: .now + .seconds(3_600)
        )
    }
}

extension PostgresError {
    /// Somebody else had a lock; the same statement may succeed a moment later.
    fileprivate var isTransient: Bool {
        switch kind {
        case .server(.lockNotAvailable), .server(.deadlockDetected), .server(.serializationFailure): true
        default: false
        }
    }
}
