import Billing
import Logging
import Synchronization

/// Tells what became of each request of a store: a count for /metrics, and a line for the log, which has the event's id
/// and type and neither who it is about nor what was in it.
final class WebhookLog: Sendable {
    /// Anybody who reaches the port can be refused, as often as he likes; the log is not his to fill.
    private static let refusalInterval = Duration.seconds(60)

    private let counters: WebhookCounters
    private let logger: Logger
    private let nextRefusal: Mutex<[BillingEvent.Source: ContinuousClock.Instant]> = .init([:])

    init(counters: WebhookCounters, logger: Logger) {
        self.counters = counters
        self.logger = logger
    }

    /// - Parameter answer: the database's, as JSON.
    func kept(_ notification: BillingEvent, answer: String) {
        let outcome: String
        if case .string(let word)? = (try? JSONValue(parsing: Array(answer.utf8)))?["outcome"] {
            outcome = word
        } else {
            outcome = "failed"
        }
        counters.count(notification.source, type: notification.typeClass, outcome: outcome)
        logger.log(
            // Somebody has to do something about it: headroom events list --failed says what.
            level: outcome == "failed" ? .notice : .info,
            "a store's event is kept",
            metadata: [
                "event.source": "\(notification.source.rawValue)", "event.id": "\(notification.id)",
                "event.type": "\(notification.type)", "event.outcome": "\(outcome)",
            ]
        )
    }

    /// Nothing of it is kept, by a fault of ours; the store sends it again.
    func failed(_ notification: BillingEvent, _ reason: String) {
        counters.count(notification.source, type: notification.typeClass, outcome: "error")
        logger.error(
            "a store's event could not be kept",
            metadata: [
                "event.source": "\(notification.source.rawValue)", "event.id": "\(notification.id)",
                "event.type": "\(notification.type)", "reason": "\(reason)",
            ]
        )
    }

    /// Nothing of it is kept. The first one in a minute is told, so that who sets up a store sees why it is refused.
    func refused(
        _ source: BillingEvent.Source,
        type: String? = nil,
        outcome: String,
        _ reason: String,
        now: ContinuousClock.Instant = .now
    ) {
        counters.count(source, type: type, outcome: outcome)
        let isFirst = nextRefusal.withLock { next in
            if let time = next[source], now < time { return false }
            next[source] = now + WebhookLog.refusalInterval
            return true
        }
        logger.log(
            level: isFirst ? .notice : .debug,
            "a webhook request is refused",
            metadata: ["event.source": "\(source.rawValue)", "event.outcome": "\(outcome)", "reason": "\(reason)"]
        )
    }
}
