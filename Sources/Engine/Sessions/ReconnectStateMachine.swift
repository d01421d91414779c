import Postgres

/// Decides when a database session is opened, and opened again after a failure. No I/O and no clock inside:
/// `ReconnectingSession` runs it.
struct ReconnectStateMachine {
    enum State: Equatable {
        /// Can transition to: opening, open.
        case closed(retryAt: ContinuousClock.Instant)
        /// Can transition to: open, closed.
        case opening
        /// Can transition to: closed.
        case open
    }

    /// How a failure compares with those before it.
    enum Failure: Equatable {
        /// The database was available until now.
        case first
        /// The server reports an error that it did not report last time: it runs, but refuses the session.
        case refused
        case repeated
    }

    private(set) var state: State
    /// When the first of the failures in a row happened; nil while the session is open, or before it is needed.
    private(set) var downSince: ContinuousClock.Instant?
    /// Successes that followed a failure.
    private(set) var reconnects = 0
    private var backoff = Backoff()
    private var newestSQLState: SQLState?

    init(at now: ContinuousClock.Instant) {
        state = .closed(retryAt: now)
    }

    /// - Returns: whether to open the session now.
    mutating func startOpening(at now: ContinuousClock.Instant) -> Bool {
        guard case .closed(let retryAt) = state, now >= retryAt else { return false }
        state = .opening
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

    /// The session could not be opened, or broke. The next attempt follows after a pause.
    mutating func failed(
        _ sqlState: SQLState?,
        at now: ContinuousClock.Instant,
        using generator: inout some RandomNumberGenerator
    ) -> Failure {
        defer {
            downSince = downSince ?? now
            newestSQLState = sqlState
            state = .closed(retryAt: now + backoff.pause(using: &generator))
        }
        if downSince == nil { return .first }
        return sqlState != nil && sqlState != newestSQLState ? .refused : .repeated
    }

    /// Closed on purpose. It may be opened again at once.
    mutating func closed(at now: ContinuousClock.Instant) {
        state = .closed(retryAt: now)
        downSince = nil
    }
}
