import Postgres

/// Decides when a database session is opened, and reopened after a failure. No I/O and no clock inside:
/// `ReconnectingSession` runs it.
struct ReconnectStateMachine {
    enum State: Equatable {
        /// Can transition to: opening; open and closed too, if a caller connects without waiting for `retryAt`.
        case closed(retryAt: ContinuousClock.Instant)
        /// Can transition to: open, closed.
        case opening(since: ContinuousClock.Instant)
        /// Can transition to: late, closed.
        case open
        /// A statement has exceeded its deadline. Its session is kept if the statement ends until then. Can transition
        /// to: open, closed.
        case late(until: ContinuousClock.Instant)
    }

    /// How a failure compares with those before it, which decides how it is logged.
    enum Failure: Equatable {
        /// The database was available until now.
        case first
        /// The server runs, but refuses the session with another error than last time.
        case refused
        /// The database is still unavailable, for the same reason or without an answer from the server.
        case repeated
    }

    private(set) var state: State
    /// When the present series of failures began. Nil if there is none: the session is open, was closed on purpose, or
    /// was not needed yet.
    private(set) var downSince: ContinuousClock.Instant?
    /// How many times the session was reopened after a failure.
    private(set) var reconnects = 0
    private var backoff = Backoff()
    private var lastSQLState: SQLState?

    init(at now: ContinuousClock.Instant) {
        state = .closed(retryAt: now)
    }

    /// - Returns: whether to open the session now.
    mutating func startOpening(at now: ContinuousClock.Instant) -> Bool {
        guard case .closed(let retryAt) = state, now >= retryAt else { return false }
        state = .opening(since: now)
        return true
    }

    /// - Returns: how long the database was unavailable; nil if it was not.
    mutating func opened(at now: ContinuousClock.Instant) -> Duration? {
        state = .open
        backoff.reset()
        guard let since = downSince else { return nil }
        downSince = nil
        reconnects += 1
        return now - since
    }

    mutating func becameLate(until end: ContinuousClock.Instant) {
        if state == .open { state = .late(until: end) }
    }

    /// The late statement has ended.
    mutating func settled() {
        if case .late = state { state = .open }
    }

    /// The session could not be opened, or broke. The next attempt follows after a pause; further failures lengthen it.
    /// An attempt that took longer than the pause, because it waited for a standby to be promoted or for a silent
    /// server, is followed by the next one at once.
    mutating func failed(
        _ sqlState: SQLState?,
        at now: ContinuousClock.Instant,
        using generator: inout some RandomNumberGenerator
    ) -> Failure {
        defer {
            downSince = downSince ?? now
            lastSQLState = sqlState
            let since = if case .opening(let since) = state { since } else { now }
            state = .closed(retryAt: max(now, since + backoff.pause(using: &generator)))
        }
        if downSince == nil { return .first }
        return sqlState != nil && sqlState != lastSQLState ? .refused : .repeated
    }

    /// The session was closed on purpose. It may be reopened at once.
    mutating func closed(at now: ContinuousClock.Instant) {
        state = .closed(retryAt: now)
        downSince = nil
    }
}
