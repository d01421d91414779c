import Engine
import Synchronization

/// Counts of notifications since the start of this instance, and what is pending in the database.
package final class NotificationMetrics: Sendable {
    private let deliveredCount = Atomic<UInt64>(0)
    private let failedCount = Atomic<UInt64>(0)
    private let lastBacklog = Mutex<NotificationOutbox.Backlog?>(nil)
    private let heldUp = Atomic(false)

    package init() {}

    package var delivered: UInt64 { deliveredCount.load(ordering: .relaxed) }

    /// Attempts, of which a notification may have several.
    package var failedAttempts: UInt64 { failedCount.load(ordering: .relaxed) }

    package func count(delivered: Bool) {
        if delivered {
            deliveredCount.wrappingAdd(1, ordering: .relaxed)
        } else {
            failedCount.wrappingAdd(1, ordering: .relaxed)
        }
    }

    /// Whether a login that may not send notifications has the lock of the session that does.
    package var isHeldUp: Bool { heldUp.load(ordering: .relaxed) }

    package func update(isHeldUp: Bool) {
        heldUp.store(isHeldUp, ordering: .relaxed)
    }

    /// The pending notifications; nil while they cannot be read.
    package var backlog: NotificationOutbox.Backlog? {
        lastBacklog.withLock { $0 }
    }

    package func update(_ backlog: NotificationOutbox.Backlog?) {
        lastBacklog.withLock { $0 = backlog }
    }
}
