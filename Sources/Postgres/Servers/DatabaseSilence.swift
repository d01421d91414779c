import Synchronization

/// Whether a database answers any session of this process.
///
/// A session that has waited for a while doubts the database, which makes the monitor ask it. A database that answers
/// no session, not even that question, is silent: its machine is stopped, or the network drops everything. One that
/// lets some sessions wait, for a lock, a disk or a standby, answers others.
public final class DatabaseSilence: Sendable {
    private static let origin = ContinuousClock.now
    /// How long a statement waits before it doubts the database.
    static let patience = Duration.milliseconds(500)

    /// Nanoseconds since `origin` at which a session doubted the database, if none has received anything since; else 0.
    private let doubtedAt = Atomic<Int64>(0)
    private let observers = Mutex<[@Sendable () -> Void]>([])

    init() {}

    /// - Parameter ask: called when the database is doubted; it makes a session ask it something.
    public func whenDoubted(_ ask: @escaping @Sendable () -> Void) {
        observers.withLock { $0.append(ask) }
    }

    /// Ends the doubt, because a session has received something.
    public func end() {
        // This is nearly always so, for each batch of messages.
        guard doubtedAt.load(ordering: .relaxed) != 0 else { return }
        doubtedAt.store(0, ordering: .relaxed)
    }

    /// Begins the doubt, because a session waits in vain.
    public func doubt() {
        let (seconds, attoseconds) = (ContinuousClock.now - DatabaseSilence.origin).components
        let now = max(1, seconds * 1_000_000_000 + attoseconds / 1_000_000_000)
        guard doubtedAt.compareExchange(expected: 0, desired: now, ordering: .relaxed).exchanged else { return }
        for ask in observers.withLock({ $0 }) { ask() }
    }

    /// Whether no session has received anything for as long as the question may take to be answered.
    public var isSilent: Bool {
        let doubted = doubtedAt.load(ordering: .relaxed)
        return doubted != 0
            && ContinuousClock.now - DatabaseSilence.origin > .nanoseconds(doubted) + DatabaseSilence.patience
    }
}
