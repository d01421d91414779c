import TestSupport
import Usage

@testable import Engine

extension ReferenceModel {
    /// What the model does with a request, as the engine's outcome.
    mutating func outcome(of operation: EngineOperation, user: UserID, at now: Instant) -> Outcome {
        do {
            switch operation {
            case .batched(let operation): return .answer(try answer(to: operation, user: user, at: now))
            case .unbatched(let operation): return try outcome(of: operation, user: user, at: now)
            }
        } catch let error as ReferenceModel.Failure {
            return .failure(EngineError(error))
        } catch {
            return .failure(EngineError(.internal, "\(error)"))
        }
    }

    private mutating func answer(to operation: BatchedOperation, user: UserID, at now: Instant) throws -> Answer {
        switch operation {
        case .consume(let messages, nil): consume(user, messages: messages, at: now)
        case .consume(let messages, let key?): try consume(user, messages: messages, key: key, at: now)
        case .reserve(let messages, let key, let ttlSeconds):
            try reserve(user, messages: messages, key: key, ttlSeconds: ttlSeconds, at: now)
        case .commit(let messages, let key): try commit(user, messages: messages, key: key, at: now)
        case .release(let key): try release(user, key: key, at: now)
        case .check(let messages): check(user, messages: messages, at: now)
        case .usage: usage(user, at: now)
        }
    }

    private mutating func outcome(of operation: UnbatchedOperation, user: UserID, at now: Instant) throws -> Outcome {
        switch operation {
        case .usageInPeriod(let period):
            return usage(user, period: period, at: now).map { .answer($0) } ?? .failure(.noSuchPeriod)
        case .history(let months):
            return .periodUsages(history(user, months: months, at: now))
        case .change(.setPlan(let change), _):
            return .answer(try setPlan(change, at: now))
        case .change(.grant(let messages, let key, _), _):
            return .answer(try grant(user, messages: messages, key: key, at: now))
        case .change(.resetUsage(let period), _):
            return resetUsage(user, period: period, at: now).map { .answer($0) } ?? .failure(.noSuchPeriod)
        case .change(.closeWindow, _):
            return .answer(closeWindow(user, at: now))
        case .change(.forget, _):
            forget(user)
            return .done
        }
    }
}

extension EngineError {
    init(_ error: ReferenceModel.Failure) {
        self =
            switch error {
            case .conflict: .keyConflict
            case .released: .keyReleased
            case .expired: .holdExpired
            case .tooMany: .commitTooLarge
            case .unknownKey: .noSuchKey
            case .unknownPlan: EngineError(.notFound, "\(error)")
            case .stateDoesNotFit, .tooLarge: EngineError(.badArgument, "\(error)")
            }
    }
}

extension Outcome {
    /// Without what is not specified. Of an answer about a period other than the current one, only the numbers are: the
    /// rest, also the limit, is as its row was last written, which a read on the slow path may do. The start of a plan
    /// that never resets is not shown.
    func comparable(in current: BillingPeriod) -> Outcome {
        guard case .answer(var answer) = self else { return self }
        if answer.snapshot.period != current {
            answer = answer.numbers
            answer.snapshot.limit = nil
            return .answer(answer)
        }
        if answer.snapshot.plan.cycle == .lifetime { answer.snapshot.startedAt = at("2026-01-01") }
        return .answer(answer)
    }
}

extension Answer {
    /// Status and numbers, which a repetition must repeat; plan, state and instants are constants.
    var numbers: Answer {
        var numbers = self
        numbers.snapshot = UsageSnapshot(
            plan: .paid,
            state: .active,
            period: snapshot.period,
            used: snapshot.used,
            held: snapshot.held,
            limit: snapshot.limit,
            window: snapshot.window.map { UsageWindow(limit: $0.limit) },
            windowUsed: snapshot.windowUsed,
            windowHeld: snapshot.windowHeld,
            denialReason: snapshot.denialReason,
            startedAt: at("2026-01-01"),
            observedAt: at("2026-01-01")
        )
        return numbers
    }

    /// The numbers of the first outcome, which the first answer and its repetitions have in common.
    var firstNumbers: Answer {
        var first = numbers
        first.isRepeated = false
        first.crossed = nil
        return first
    }
}
