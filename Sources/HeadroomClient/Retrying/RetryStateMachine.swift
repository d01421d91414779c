import LineProtocol
import NIOCore

/// The effect of sending a request a second time.
enum Repeatability: Sendable {
    /// The request changes nothing.
    case reading
    /// The request has a key, so it takes effect once.
    case keyed
    /// The request could take effect twice, or undo a change made in between. It is sent again only while the service
    /// cannot have received it.
    case once
}

/// The attempts of one request until its deadline.
struct RetryStateMachine: Sendable {
    let repeatability: Repeatability
    let key: MessageKey?
    let deadline: NIODeadline
    private let attemptTimeout: Duration
    private let backoff: Backoff
    private var attempts = 0
    /// Whether to try another connection when this one is no longer authenticated: the token may have been replaced
    /// since it was opened. One retry is enough, because each new connection presents the token.
    private var mayAuthenticateAgain: Bool
    /// An attempt was sent, and its outcome is unknown.
    private var mayHaveTakenEffect = false
    /// The cause of the latest failed attempt.
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

    /// The deadline of the next attempt.
    func attemptDeadline(now: NIODeadline) -> NIODeadline {
        // A request that cannot be sent again waits until its deadline.
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
        case .reply(.answer(var answer)) where mayHaveTakenEffect:
            // Most likely it repeats an earlier attempt of this call, whose answer nobody has received.
            answer.usage.isRepeated = false
            return .answer(.answer(answer))
        case .reply(let reply): return .answer(reply)
        case .lost(let wasSent, let cause):
            lastFailure = cause ?? lastFailure
            if wasSent { mayHaveTakenEffect = true }
            // Connecting again has its own pause.
            return retry(after: .zero, now: now)
        case .timedOut:
            mayHaveTakenEffect = true
            return retry(after: .zero, now: now)
        case .unreachable(let cause):
            lastFailure = cause ?? lastFailure
            return .fail(failure)
        case .cancelled(let wasSent):
            if wasSent { mayHaveTakenEffect = true }
            var error = HeadroomError(code: .cancelled, message: "cancelled before it was sent", key: key)
            if mayHaveTakenEffect { error.message = "cancelled after it was sent; whether it took effect is not known" }
            error.mayHaveTakenEffect = mayHaveTakenEffect
            return .fail(error)
        case .refused(let error):
            // The error says that nothing was counted, which is true for this attempt only.
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
        answer.mayHaveTakenEffect = answer.leavesOutcomeUnknown
        var pause = backoff.pause(after: attempts - 1, using: &generator)
        switch answer.code {
        case .unavailable, .overloaded:
            if let advised = error.retryAfterMilliseconds { pause = max(pause, advice(advised, using: &generator)) }
        case .unknown: mayHaveTakenEffect = true
        // The connection accepts no more requests; the next attempt uses another one.
        case .draining: pause = .zero
        case .notAuthenticated where mayAuthenticateAgain:
            mayAuthenticateAgain = false
            pause = .zero
        default:
            lastFailure = answer
            // Most errors are about this attempt alone. These are about the key, and so about earlier attempts, too.
            let isAboutKey = [.conflict, .expired, .notFound].contains(answer.code)
            return .fail(isAboutKey ? answer : failure)
        }
        lastFailure = answer
        return retry(after: pause, now: now)
    }

    /// The advised pause plus a random part of up to half of it, so that clients with the same advice spread out.
    private func advice(_ milliseconds: Int, using generator: inout some RandomNumberGenerator) -> Duration {
        .milliseconds(min(max(milliseconds, 0), 60_000)) * Double.random(in: 1..<1.5, using: &generator)
    }

    private func retry(after pause: Duration, now: NIODeadline) -> Action {
        guard !(mayHaveTakenEffect && repeatability == .once), now + TimeAmount(pause) < deadline else {
            return .fail(failure)
        }
        return .retry(after: pause)
    }

    private var failure: HeadroomError {
        if mayHaveTakenEffect, repeatability != .reading {
            var error = HeadroomError(
                code: .unknown,
                message: "no answer came in time; whether it took effect is not known",
                underlying: lastFailure,
                key: key
            )
            error.mayHaveTakenEffect = true
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
