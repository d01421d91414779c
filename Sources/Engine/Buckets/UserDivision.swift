import Postgres

/// Divides the users of a database into buckets, part by part, while messages are counted.
///
/// Each step moves the users of some parts (`headroom.divide_users`) and holds up all counting for as long as it takes.
/// So steps are short: the next one has more parts or fewer, depending on how long the last one took. A division that
/// was interrupted goes on where it was. docs/scaling.md describes it for operators.
public struct UserDivision: Sendable {
    /// How far a division has come.
    public struct Progress: Sendable {
        /// The moved parts of the users' hashes, out of `partsMaximum`.
        public var parts: Int
        public var rows: Int
        /// The longest step. Nothing was counted for that time.
        public var longestStep: Duration
    }

    /// What a division is going to do.
    public struct Plan: Sendable {
        /// The number of buckets that there will be.
        public var buckets: Int
        /// The parts that have moved already.
        public var parts: Int
        public var tables: [Table]

        public var isDone: Bool { parts == UserDivision.partsMaximum }
    }

    /// A table whose rows are divided.
    public struct Table: Sendable {
        public var name: String
        /// The number of rows, as PostgreSQL estimates it.
        public var rows: Int
        /// The index by which users are found meanwhile, in the table's schema.
        fileprivate var partIndex: String
        fileprivate var hasIndex: Bool
        /// Whether the index can be used. It cannot if its creation was interrupted.
        fileprivate var hasValidIndex: Bool
    }

    /// The reason why a division is not begun.
    public enum Refusal: Error, Sendable, CustomStringConvertible {
        /// The database is divided into another number of buckets already, which cannot be changed.
        case hasOtherBuckets(Int)

        public var description: String {
            switch self {
            case .hasOtherBuckets(let count): "the database has \(count) buckets, and their number cannot be changed"
            }
        }
    }

    private static let usualBuckets = 64

    public static let partsMaximum = BucketMap.movedMaximum
    /// A rate for estimates. It was measured beside a load on two cores, with the pauses.
    public static let usualRowsPerSecond = 20_000
    /// The time that a step should take.
    private static let stepDuration = Duration.milliseconds(100)

    private let database: DatabaseTopology
    /// The number of buckets to make; nil for the present number, or the usual one.
    private let buckets: Int?

    /// - Parameter buckets: a power of two from 2 to 1024; nil for the number of a divided database, else 64.
    public init(_ database: DatabaseTopology, into buckets: Int?) {
        self.database = database
        self.buckets = buckets
    }

    /// Computes what `run` would do, and changes nothing. It blocks.
    public func plan() throws -> Plan {
        let connection = try connect()
        defer { connection.close() }
        let map = try map(connection)
        return Plan(
            buckets: map.isSingle ? buckets ?? UserDivision.usualBuckets : map.buckets.count,
            parts: map.isSingle ? 0 : map.moved,
            tables: try tables(connection)
        )
    }

    /// Divides the database, or does nothing if it is divided. It blocks.
    ///
    /// - Parameter report: called before the first step and after each; not at all if the database is divided.
    /// - Returns: the number of buckets.
    public func run(_ report: (Progress) -> Void) throws -> Int {
        let connection = try connect()
        defer { connection.close() }
        // PostgreSQL ends one of two commands that create indexes on one table concurrently, as a deadlock.
        try connection.lockDistribution()
        var map = try map(connection)
        if map.isSingle {
            try RetriedTransaction(connection: connection)
                .execute(EmbeddedSQL.beginDivision, Int32(buckets ?? UserDivision.usualBuckets))
            map = try connection.currentBuckets(deadline: .now + .seconds(30))
        }
        if !map.isSettled {
            try createIndexes(connection)
            try moveUsers(connection, from: map.moved, report)
        }
        try RetriedTransaction(connection: connection).execute(EmbeddedSQL.endDivision)
        try dropIndexes(connection)
        return map.buckets.count
    }

    private func connect() throws(PostgresError) -> DatabaseConnection {
        try DatabaseConnection.connect(.migration(database))
    }

    private func map(_ connection: DatabaseConnection) throws -> BucketMap {
        let map = try connection.currentBuckets(deadline: .now + .seconds(30))
        if let buckets, !map.isSingle, map.buckets.count != buckets {
            throw Refusal.hasOtherBuckets(map.buckets.count)
        }
        return map
    }

    private func moveUsers(_ connection: DatabaseConnection, from first: Int, _ report: (Progress) -> Void) throws {
        let step = RetriedTransaction(connection: connection, asOwner: true)
        var progress = Progress(parts: first, rows: 0, longestStep: .zero)
        report(progress)
        var size = StepSize()
        while progress.parts < UserDivision.partsMaximum {
            let next = min(progress.parts + size.parts, UserDivision.partsMaximum)
            let (moved, duration) = try step.execute(EmbeddedSQL.divideUsers, Int32(next))
            progress.rows += Int(try moved.int64(0, 0))
            progress.parts = next
            progress.longestStep = max(progress.longestStep, duration)
            report(progress)
            size.adapt(to: duration)
            // The messages that have waited are counted before the next step.
            RetriedTransaction.sleep(duration)
        }
    }

    /// The number of parts that a step moves. It at most doubles from step to step, so that one quick step does not
    /// make the next one long.
    ///
    /// A step also takes a time that does not depend on its size, for locks and the commit. Where that alone is too
    /// long, as on a busy machine, small steps would never end, and hold up as many messages each.
    struct StepSize {
        private(set) var parts = 1
        private var previous: (parts: Int, duration: Duration)?

        mutating func adapt(to duration: Duration) {
            let before = previous ?? (parts, duration)
            previous = (parts, duration)
            if duration <= UserDivision.stepDuration {
                if duration * 2 < UserDivision.stepDuration { grow() }
            } else if parts < before.parts && duration > before.duration * 3 / 4 {
                // Fewer parts took as long.
                grow()
            } else if parts > before.parts && duration < before.duration * 5 / 4 {
                // More parts took hardly longer.
                grow()
            } else if parts == 1 && before.parts == 1 {
                // A larger step shows whether more parts take longer.
                grow()
            } else {
                parts = max(1, parts / 2)
            }
        }

        private mutating func grow() {
            parts = min(parts * 2, UserDivision.partsMaximum)
        }
    }

    // MARK: Tables

    private func tables(_ connection: DatabaseConnection) throws(PostgresError) -> [Table] {
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

    /// Creates the indexes without blocking anybody, which is possible only outside of a transaction.
    private func createIndexes(_ connection: DatabaseConnection) throws(PostgresError) {
        for table in try tables(connection) where !table.hasValidIndex {
            if table.hasIndex { try dropIndex(of: table, connection) }
            try connection.execute(
                "create index concurrently \(table.partIndex) on \(table.name) (headroom.part_of(user_id))",
                deadline: .now + .seconds(86_400)
            )
        }
    }

    private func dropIndexes(_ connection: DatabaseConnection) throws(PostgresError) {
        for table in try tables(connection) where table.hasIndex { try dropIndex(of: table, connection) }
    }

    private func dropIndex(of table: Table, _ connection: DatabaseConnection) throws(PostgresError) {
        let schema = table.name.prefix { $0 != "." }
        try connection.execute(
            "drop index concurrently \(schema).\(table.partIndex)",
            deadline: .now + .seconds(3_600)
        )
    }
}
