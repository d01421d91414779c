import Postgres

/// Decides when a database session is opened, and reopened after a failure. It has no I/O and no clock:
/// `ReconnectingSession` runs it.
struct ReconnectStateMachine {
    enum State: Equatable {
        /// It is closed. Can transition to: opening; open and closed too, if a caller does not wait for `retryAt`.
        case closed(retryAt: ContinuousClock.Instant)
        /// A connection is being opened. Can transition to: open, closed.
        case opening(since: ContinuousClock.Instant)
        /// The session can be used. Can transition to: late, closed.
        case open
        /// A statement has exceeded its deadline. The session is kept if the statement ends before this instant. Can
        /// transition to: open, closed.
        case late(until: ContinuousClock.Instant)
    }

    /// The relation of a failure to those before it, which decides how it is logged.
    enum Failure: Equatable {
        /// The database was available until now.
        case first
        /// The server runs, but refuses the session with another error than last time.
        case refused
        /// The database is still unavailable, for the same reason or without an answer from the server.
        case repeated
    }

    private(set) var state: State
    /// When the present series of failures began; nil if there is none, because the session is open, was closed on
    /// purpose, or was not needed yet.
    private(set) var downSince: ContinuousClock.Instant?
    /// The number of times that the session was reopened after a failure.
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

    /// - Returns: the time for which the database was unavailable; nil if it was available.
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

    /// Notes that the late statement has ended.
    mutating func settled() {
        if case .late = state { state = .open }
    }

    /// Notes that the session could not be opened, or broke. The next attempt follows after a pause, which grows with
    /// each failure. An attempt that took longer than the pause, because it waited for a standby to be promoted or for
    /// a silent server, is followed by the next one at once.
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

    /// Notes that the session was closed on purpose. It may be reopened at once.
    mutating func closed(at now: ContinuousClock.Instant) {
        state = .closed(retryAt: now)
        downSince = nil
    }
}
