import Postgres

/// How old the tokens in memory are. They are read every two seconds; a later revocation has no effect before the next
/// read.
struct TokenFreshness: Sendable {
    /// The age from which on it is a problem. It is longer than a connect and a statement that both take their full
    /// timeout.
    static let limit = Duration.seconds(10)

    private let since: ContinuousClock.Instant
    private var readAt: ContinuousClock.Instant?
    private var error: PostgresError?
    private var isReported = false

    init(since: ContinuousClock.Instant) {
        self.since = since
    }

    /// - Returns: whether a failure to read them was logged before.
    mutating func read(at now: ContinuousClock.Instant) -> Bool {
        defer { isReported = false }
        readAt = now
        error = nil
        return isReported
    }

    /// - Returns: a warning to log, once until they are read again.
    mutating func failed(_ error: PostgresError, at now: ContinuousClock.Instant) -> String? {
        self.error = error
        guard !isReported, readAt == nil || age(at: now) >= TokenFreshness.limit else { return nil }
        isReported = true
        return readAt == nil
            ? "the tokens cannot be read; connections are refused until they can"
            : "the tokens cannot be read; the last ones stay valid, and a revocation has no effect"
    }

    func age(at now: ContinuousClock.Instant) -> Duration {
        now - (readAt ?? since)
    }

    /// A text without names of hosts or of anything in the database: the page of readiness is public.
    func problem(at now: ContinuousClock.Instant) -> String? {
        guard readAt == nil || age(at: now) >= TokenFreshness.limit else { return nil }
        let cause = error?.summary ?? "no answer from the database yet"
        guard readAt != nil else { return "the tokens were never read since the start: \(cause)" }
        return "the tokens were last read \(age(at: now).components.seconds) s ago: \(cause)"
    }
}
