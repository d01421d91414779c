import LineProtocol
import NIOCore

/// What sending a request a second time can do.
enum Repeatability: Sendable {
    /// It changes nothing.
    case reading
    /// It carries a key, so it takes effect once.
    case keyed
    /// It may take effect twice, or undo what came in between: it is sent again only while nothing can have been done.
    case once
}

/// One request on its way through as many attempts as its time allows.
struct RetryStateMachine: Sendable {
    let repeatability: Repeatability
    let key: MessageKey?
    let deadline: NIODeadline
    private let attemptTimeout: Duration
    private let backoff: Backoff
    private var attempts = 0
    /// Whether a connection that is not authenticated any more is a reason to try another one: the token may have been
    /// replaced since it was opened. Once is enough, because each new connection presents the token.
    private var mayAuthenticateAgain: Bool
    /// It was sent, and what became of it is not known.
    private var mayBeDone = false
    /// The last thing that went wrong.
    private var lastFailure: (any Error)?

    init(
        _ repeatability: Repeatability,
        key: MessageKey?,
        deadline: NIODeadline,
        attemptTimeout: Duration,
        hasCredentials: Bool = false,
        backoff: Backoff
    ) {
        self.repeatability = repeatability
        self.key = key
        self.deadline = deadline
        self.attemptTimeout = attemptTimeout
        mayAuthenticateAgain = hasCredentials
        self.backoff = backoff
    }

    /// Until when the next attempt may take.
    func attemptDeadline(now: NIODeadline) -> NIODeadline {
        // Giving up what cannot be sent again gains nothing.
        repeatability == .once ? deadline : min(now + TimeAmount(attemptTimeout), deadline)
    }

    enum Action {
        case answer(ReceivedReply)
        case retry(after: Duration)
        case fail(HeadroomError)
    }

    mutating func next(
        after exchange: Exchange,
        now: NIODeadline,
        using generator: inout some RandomNumberGenerator
    ) -> Action {
        attempts += 1
        switch exchange {
        case .reply(.error(let error)): return next(after: error, now: now, using: &generator)
        case .reply(let reply): return .answer(reply)
        case .lost(let wasSent, let cause):
            lastFailure = cause ?? lastFailure
            if wasSent { mayBeDone = true }
            // The pause is that of connecting again.
            return retry(after: .zero, now: now)
        case .timedOut:
            mayBeDone = true
            return retry(after: .zero, now: now)
        case .unreachable(let cause):
            lastFailure = cause ?? lastFailure
            return .fail(failure)
        case .cancelled(let wasSent):
            if wasSent { mayBeDone = true }
            var error = HeadroomError(code: .cancelled, message: "cancelled before it was sent", key: key)
            if mayBeDone { error.message = "cancelled after it was sent; whether it took effect is not known" }
            error.mayBeDone = mayBeDone
            return .fail(error)
        case .refused(let error):
            // It says that nothing was counted, which holds for this attempt.
            guard mayBeDone, repeatability != .reading else { return .fail(error) }
            lastFailure = error
            return .fail(failure)
        }
    }

    private mutating func next(
        after error: ReceivedError,
        now: NIODeadline,
        using generator: inout some RandomNumberGenerator
    ) -> Action {
        var answer = HeadroomError(error, key: key)
        answer.mayBeDone = answer.isSilentOnOutcome
        var pause = backoff.pause(after: attempts - 1, using: &generator)
        switch answer.code {
        case .unavailable, .overloaded:
            if let advised = error.retryAfterMilliseconds { pause = max(pause, advice(advised, using: &generator)) }
        case .unknown: mayBeDone = true
        // The connection takes no more; the next attempt finds another one.
        case .draining: pause = .zero
        case .notAuthenticated where mayAuthenticateAgain:
            mayAuthenticateAgain = false
            pause = .zero
        default: return .fail(answer)
        }
        lastFailure = answer
        return retry(after: pause, now: now)
    }

    /// The advised pause plus a random part of up to half of it, so that clients with the same advice spread out.
    private func advice(_ milliseconds: Int, using generator: inout some RandomNumberGenerator) -> Duration {
        .milliseconds(min(max(milliseconds, 0), 60_000)) * Double.random(in: 1..<1.5, using: &generator)
    }

    private func retry(after pause: Duration, now: NIODeadline) -> Action {
        guard !(mayBeDone && repeatability == .once), now + TimeAmount(pause) < deadline else { return .fail(failure) }
        return .retry(after: pause)
    }

    private var failure: HeadroomError {
        if mayBeDone, repeatability != .reading {
            var error = HeadroomError(
                code: .unknown,
                message: "no answer came in time; whether it took effect is not known",
                underlying: lastFailure,
                key: key
            )
            error.mayBeDone = true
            return error
        }
        if let answer = lastFailure as? HeadroomError { return answer }
        return HeadroomError(
            code: .unreachable,
            message: "no endpoint answered in time; see that the service runs, and that its address is right",
            underlying: lastFailure,
            key: key
        )
    }
}
