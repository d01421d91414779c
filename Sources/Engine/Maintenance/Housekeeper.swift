import Logging
import Postgres

/// Deletes old keys and the payloads of old store notifications, apart from the lanes: on a connection of its own, a batch
/// at a time.
public struct Housekeeper: Sendable {
    /// A failure of one chore does not stop the others.
    public enum Chore: CaseIterable, Sendable {
        case keys, notifications
    }

    /// Keys, or notifications, per transaction.
    static let batchMaximum = 1_000

    private let options: ConnectionOptions
    private let keepDays: Int
    private let logger: Logger
    private let logs: [Chore: RepeatedWorkLog]

    /// - Parameter keepDays: how long keys are kept, at least 7.
    public init(databaseURL: String, keepDays: Int, logger: Logger) {
        options = .service("housekeeper", databaseURL)
        self.keepDays = keepDays
        self.logger = logger
        logs = [
            .keys: RepeatedWorkLog("forgetting old keys", logger),
            .notifications: RepeatedWorkLog("forgetting old payloads of store notifications", logger),
        ]
    }

    /// Deletes all that is old enough. Pauses between batches as long as each took, so that it uses at most half of a core of
    /// the database.
    ///
    /// - Returns: the number of keys, or notifications.
    /// - Throws: when the database cannot be reached, or refuses.
    public func prune(_ chore: Chore) async throws -> Int {
        let (options, days) = (options, Int32(keepDays))
        var total = 0
        while true {
            let started = ContinuousClock.now
            let count = try await onThread(named: "headroom.housekeeper") {
                var parameters = Parameters()
                if chore == .keys { parameters.append(int32: days) }
                parameters.append(int32: Int32(Housekeeper.batchMaximum))
                let sql = chore == .keys ? EmbeddedSQL.pruneKeys : EmbeddedSQL.pruneBillingEvents
                return Int(try options.query(sql, parameters, timeout: .seconds(60)).int64(0, 0))
            }
            total += count
            if count < Housekeeper.batchMaximum { return total }
            try await Task.sleep(for: ContinuousClock.now - started)
        }
    }

    /// Does all chores every `interval` until cancelled.
    public func run(every interval: Duration) async {
        while true {
            do {
                try await Task.sleep(for: interval)
            } catch {
                return
            }
            for chore in Chore.allCases {
                do {
                    log(try await prune(chore), chore)
                    logs[chore]?.succeeded()
                } catch is CancellationError {
                    return
                } catch {
                    logs[chore]?.failed(error)
                }
            }
        }
    }

    private func log(_ count: Int, _ chore: Chore) {
        guard count > 0 else { return }
        switch chore {
        case .keys: logger.info("old keys forgotten", metadata: ["keys.count": "\(count)"])
        case .notifications:
            logger.info("old payloads of store notifications forgotten", metadata: ["notifications.count": "\(count)"])
        }
    }
}
