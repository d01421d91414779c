import Billing
import JSON
import Logging
import StoreEvents
import Synchronization

/// Records the outcome of each request of a store: counts it for /metrics, and logs the event's id and type, but
/// neither its user nor its content.
final class WebhookRecorder: Sendable {
    /// Limits the log, because anyone that reaches the port can cause rejections.
    private static let rejectionInterval = Duration.seconds(60)

    private let counters: WebhookCounters
    private let logger: Logger
    private let nextRejectionLog: Mutex<[BillingEvent.Source: ContinuousClock.Instant]> = .init([:])

    init(counters: WebhookCounters, logger: Logger) {
        self.counters = counters
        self.logger = logger
    }

    /// - Parameter answer: the database's, as JSON.
    func stored(_ event: BillingEvent, answer: String) {
        let outcome = (try? JSONValue(parsing: Array(answer.utf8)))?["outcome"]?.string ?? "failed"
        counters.count(event.source, type: event.typeClass, outcome: outcome)
        logger.log(
            // An operator has to fix its cause, which headroom events list --failed names.
            level: outcome == "failed" ? .notice : .info,
            "a store event is stored",
            metadata: [
                "event.source": "\(event.source.rawValue)", "event.id": "\(event.id)",
                "event.type": "\(event.type)", "event.outcome": "\(outcome)",
            ]
        )
    }

    /// An internal error: the store sends the event again. It may be stored as failed meanwhile.
    func failed(_ event: BillingEvent, _ reason: String) {
        counters.count(event.source, type: event.typeClass, outcome: "error")
        logger.error(
            "a store event could not be applied",
            metadata: [
                "event.source": "\(event.source.rawValue)", "event.id": "\(event.id)",
                "event.type": "\(event.type)", "reason": "\(reason)",
            ]
        )
    }

    /// The request is rejected and nothing of it is stored. The first rejection in a minute is logged at level notice,
    /// for an operator that is setting up a store.
    func rejected(
        _ source: BillingEvent.Source,
        type: String? = nil,
        outcome: String,
        _ reason: String,
        now: ContinuousClock.Instant = .now
    ) {
        counters.count(source, type: type, outcome: outcome)
        let isFirst = nextRejectionLog.withLock { next in
            if let time = next[source], now < time { return false }
            next[source] = now + WebhookRecorder.rejectionInterval
            return true
        }
        logger.log(
            level: isFirst ? .notice : .debug,
            "a webhook request is rejected",
            metadata: ["event.source": "\(source.rawValue)", "event.outcome": "\(outcome)", "reason": "\(reason)"]
        )
    }
}
