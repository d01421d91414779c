import Logging
import Postgres

/// Forgets old keys, away from the lanes: on a connection of its own, a portion at a time.
public struct Housekeeper: Sendable {
    /// Keys forgotten in one transaction.
    static let portion = 1_000

    private let options: ConnectionOptions
    private let keepDays: Int
    private let logger: Logger

    /// - Parameter keepDays: how long keys are remembered, at least 7.
    public init(databaseURL: String, keepDays: Int, logger: Logger) {
        options = ConnectionOptions(
            conninfo: databaseURL,
            applicationName: "headroom housekeeper",
            role: ServiceRole.name
        )
        self.keepDays = keepDays
        self.logger = logger
    }

    /// Forgets every key that is old enough, and returns how many. Pauses between portions as long as each took, so that
    /// it never has more than half of a core of the database.
    ///
    /// - Throws: when the database cannot be reached or refuses.
    public func prune() async throws -> Int {
        var total = 0
        while true {
            let started = ContinuousClock.now
            let count = try await onThread(named: "headroom.housekeeper") { try prunePortion() }
            total += count
            if count < Housekeeper.portion { return total }
            try await Task.sleep(for: ContinuousClock.now - started)
        }
    }

    private func prunePortion() throws(PostgresError) -> Int {
        let connection = try Connection.connect(options)
        defer { connection.close() }
        var parameters = Parameters()
        parameters.append(int32: Int32(keepDays))
        parameters.append(int32: Int32(Housekeeper.portion))
        let result = try connection.query(EmbeddedSQL.pruneKeys, parameters, deadline: .now + .seconds(60))
        return Int(result.int64(0, 0))
    }

    /// Prunes every `interval` until cancelled.
    public func run(every interval: Duration) async {
        while true {
            do {
                try await Task.sleep(for: interval)
                let count = try await prune()
                if count > 0 { logger.info("old keys forgotten", metadata: ["keys.count": "\(count)"]) }
            } catch is CancellationError {
                return
            } catch {
                // The lanes say it when the database is away; the next turn tries again.
                logger.debug("old keys could not be forgotten", metadata: ["error": "\(error)"])
            }
        }
    }
}
