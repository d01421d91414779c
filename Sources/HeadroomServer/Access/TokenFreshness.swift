import Postgres

/// Whether what is known of the tokens is up to date. They are read every two seconds; what was revoked since the last
/// reading is not known.
struct TokenFreshness: Sendable {
    /// From this age on it is a problem: a statement that takes its whole time, and a connection that does, fit in.
    static let limit = Duration.seconds(10)

    private let since: ContinuousClock.Instant
    private var readAt: ContinuousClock.Instant?
    private var error: PostgresError?
    private var isReported = false

    init(since: ContinuousClock.Instant) {
        self.since = since
    }

    /// - Returns: whether it was reported that they could not be read.
    mutating func read(at now: ContinuousClock.Instant) -> Bool {
        defer { isReported = false }
        readAt = now
        error = nil
        return isReported
    }

    /// - Returns: what to log, once until they are read again.
    mutating func failed(_ error: PostgresError, at now: ContinuousClock.Instant) -> String? {
        self.error = error
        guard !isReported, readAt == nil || age(at: now) >= TokenFreshness.limit else { return nil }
        isReported = true
        return readAt == nil
            ? "tokens cannot be read; connections that need one are refused until they are"
            : "tokens cannot be read; those that are known stay, and revoking one is not noticed"
    }

    func age(at now: ContinuousClock.Instant) -> Duration {
        now - (readAt ?? since)
    }

    /// For people, without names of hosts or of anything in the database: readiness is shown to everybody.
    func problem(at now: ContinuousClock.Instant) -> String? {
        guard readAt == nil || age(at: now) >= TokenFreshness.limit else { return nil }
        let cause = error?.summary ?? "no answer from the database yet"
        guard readAt != nil else { return "tokens were never read since the start: \(cause)" }
        return "tokens were last read \(age(at: now).components.seconds) s ago: \(cause)"
    }
}
