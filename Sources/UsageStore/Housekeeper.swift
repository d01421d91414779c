import Logging
import Postgres

/// Forgets old keys, and what was in stores' old notifications, away from the lanes: on a connection of its own, a portion
/// at a time.
public struct Housekeeper: Sendable {
    /// What one turn of the housekeeper forgot.
    public struct Forgotten: Sendable, Equatable {
        public var keys = 0
        public var notifications = 0
    }

    /// Keys, or notifications, forgotten in one transaction.
    static let portion = 1_000

    private let options: ConnectionOptions
    private let keepDays: Int
    private let logger: Logger

    /// - Parameter keepDays: how long keys are remembered, at least 7.
    public init(databaseURL: String, keepDays: Int, logger: Logger) {
        options = .service("housekeeper", databaseURL)
        self.keepDays = keepDays
        self.logger = logger
    }

    /// Forgets all that is old enough, and returns how much. Pauses between portions as long as each took, so that it
    /// never has more than half of a core of the database.
    ///
    /// - Throws: when the database cannot be reached or refuses.
    public func prune() async throws -> Forgotten {
        let days = Int32(keepDays)
        let keys = try await pruneAll { connection throws(PostgresError) in
            var parameters = Parameters()
            parameters.append(int32: days)
            parameters.append(int32: Int32(Housekeeper.portion))
            return try connection.query(EmbeddedSQL.pruneKeys, parameters, deadline: .now + .seconds(60))
        }
        let notifications = try await pruneAll { connection throws(PostgresError) in
            var parameters = Parameters()
            parameters.append(int32: Int32(Housekeeper.portion))
            return try connection.query(EmbeddedSQL.pruneBillingEvents, parameters, deadline: .now + .seconds(60))
        }
        return Forgotten(keys: keys, notifications: notifications)
    }

    private func pruneAll(
        _ portion: @escaping @Sendable (Connection) throws(PostgresError) -> QueryResult
    ) async throws -> Int {
        let options = options
        var total = 0
        while true {
            let started = ContinuousClock.now
            let count = try await onThread(named: "headroom.housekeeper") {
                let connection = try Connection.connect(options)
                defer { connection.close() }
                return Int(try portion(connection).int64(0, 0))
            }
            total += count
            if count < Housekeeper.portion { return total }
            try await Task.sleep(for: ContinuousClock.now - started)
        }
    }

    /// Prunes every `interval` until cancelled.
    public func run(every interval: Duration) async {
        while true {
            do {
                try await Task.sleep(for: interval)
                let forgotten = try await prune()
                if forgotten.keys > 0 {
                    logger.info("old keys forgotten", metadata: ["keys.count": "\(forgotten.keys)"])
                }
                if forgotten.notifications > 0 {
                    logger.info(
                        "what was in stores' old notifications is forgotten",
                        metadata: ["notifications.count": "\(forgotten.notifications)"]
                    )
                }
            } catch is CancellationError {
                return
            } catch {
                // The lanes say it when the database is away; the next turn tries again.
                logger.debug("old keys could not be forgotten", metadata: ["error": "\(error)"])
            }
        }
    }
}
