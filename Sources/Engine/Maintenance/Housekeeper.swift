import Logging
import Postgres

/// Deletes old keys, the payloads of old billing events, and old notifications, apart from the lanes: on a connection
/// of its own, a batch at a time.
public struct Housekeeper: Sendable {
    /// A task of the housekeeper. A failure of one does not stop the others.
    public enum MaintenanceTask: CaseIterable, Sendable {
        case pruneKeys
        /// Deletes the payloads of old billing events; the events stay.
        case prunePayloads
        case pruneNotifications
    }

    /// The most rows per transaction.
    static let batchMaximum = 1_000

    private let options: ConnectionOptions
    private let keepDays: Int
    private let logger: Logger
    private let logs: [MaintenanceTask: RepeatedWorkLog]

    /// - Parameter keepDays: the days for which keys are kept, at least 7.
    public init(database: DatabaseTopology, keepDays: Int, logger: Logger) {
        options = .service("housekeeper", database)
        self.keepDays = keepDays
        self.logger = logger
        logs = [
            .pruneKeys: RepeatedWorkLog("deleting old keys", logger),
            .prunePayloads: RepeatedWorkLog("deleting old payloads of billing events", logger),
            .pruneNotifications: RepeatedWorkLog("deleting old notifications", logger),
        ]
    }

    /// Deletes all that is old enough. It pauses between batches as long as each took, so that it uses at most half of
    /// a core of the database.
    ///
    /// - Parameter report: called after each batch with the number of deleted keys, payloads or notifications.
    /// - Returns: the final number.
    /// - Throws: if the database cannot be reached, or refuses.
    public func perform(_ task: MaintenanceTask, _ report: (Int) -> Void = { _ in }) async throws -> Int {
        let (options, days) = (options, Int32(keepDays))
        var total = 0
        while true {
            let started = ContinuousClock.now
            let count = try await onThread(named: "headroom.housekeeper") {
                var parameters = Parameters()
                if task == .pruneKeys { parameters.append(int32: days) }
                parameters.append(int32: Int32(Housekeeper.batchMaximum))
                let sql =
                    switch task {
                    case .pruneKeys: EmbeddedSQL.pruneKeys
                    case .prunePayloads: EmbeddedSQL.pruneBillingEvents
                    case .pruneNotifications: EmbeddedSQL.pruneNotifications
                    }
                return Int(try options.query(sql, parameters, timeout: .seconds(60)).int64(0, 0))
            }
            total += count
            report(total)
            if count < Housekeeper.batchMaximum { return total }
            try await Task.sleep(for: ContinuousClock.now - started)
        }
    }

    /// Performs all tasks every `interval` until cancelled.
    public func run(every interval: Duration) async {
        while true {
            do {
                try await Task.sleep(for: interval)
            } catch {
                return
            }
            for task in MaintenanceTask.allCases {
                do {
                    log(try await perform(task), task)
                    logs[task]?.succeeded()
                } catch is CancellationError {
                    return
                } catch {
                    logs[task]?.failed(error)
                }
            }
        }
    }

    private func log(_ count: Int, _ task: MaintenanceTask) {
        guard count > 0 else { return }
        switch task {
        case .pruneKeys: logger.info("old keys deleted", metadata: ["keys.count": "\(count)"])
        case .prunePayloads:
            logger.info("old payloads of billing events deleted", metadata: ["payloads.count": "\(count)"])
        case .pruneNotifications:
            logger.info("old notifications deleted", metadata: ["notifications.count": "\(count)"])
        }
    }
}
