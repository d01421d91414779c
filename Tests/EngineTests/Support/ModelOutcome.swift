import TestSupport
import Usage

@testable import Engine

extension ReferenceModel {
    private static let noSuchPeriod = EngineError(
        .notFound,
        "this user has no usage in that period; HISTORY lists the periods"
    )

    /// What the model does with a request, in the engine's terms.
    mutating func outcome(of operation: EngineOperation, user: UserID, at now: Instant) -> Outcome {
        do {
            switch operation {
            case .consume(let messages, nil):
                return .answer(consume(user, messages: messages, at: now))
            case .consume(let messages, let key?):
                return .answer(try consume(user, messages: messages, key: key, at: now))
            case .reserve(let messages, let key, let ttlSeconds):
                return .answer(try reserve(user, messages: messages, key: key, ttlSeconds: ttlSeconds, at: now))
            case .commit(let key):
                return .answer(try commit(user, key: key, at: now))
            case .release(let key):
                return .answer(try release(user, key: key, at: now))
            case .check(let messages):
                return .answer(check(user, messages: messages, at: now))
            case .usage:
                return .answer(usage(user, at: now))
            case .usageInPeriod(let period):
                return usage(user, period: period, at: now).map { .answer($0) } ?? .failure(ReferenceModel.noSuchPeriod)
            case .history(let months):
                return .history(history(user, months: months, at: now))
            case .setPlan(let change):
                return .answer(try setPlan(change, at: now))
            case .grant(let messages, let key, _):
                return .answer(try grant(user, messages: messages, key: key, at: now))
            case .attributed(let change, _, _):
                return outcome(of: change, user: user, at: now)
            case .forget:
                forget(user)
                return .done
            case .resetUsage(let period):
                return resetUsage(user, period: period, at: now).map { .answer($0) }
                    ?? .failure(ReferenceModel.noSuchPeriod)
            }
        } catch let error as ReferenceModel.KeyError {
            return .failure(EngineError(error))
        } catch let error as ReferenceModel.ChangeError {
            return .failure(EngineError(error.code, "\(error)"))
        } catch {
            return .failure(EngineError(.internal, "\(error)"))
        }
    }
}

extension ReferenceModel.ChangeError {
    var code: EngineError.Code {
        switch self {
        case .unknownPlan: .notFound
        case .stateDoesNotFit, .grantTooLarge: .badArgument
        case .grantConflict: .conflict
        }
    }
}

extension EngineError {
    init(_ error: ReferenceModel.KeyError) {
        self =
            switch error {
            case .conflict: .keyConflict
            case .released: .keyReleased
            case .expired: .holdExpired
            case .unknownKey: .noSuchKey
            }
    }
}

extension Outcome {
    /// Without what nobody promises: an answer about another period than the user's current one has that period's
    /// numbers, and the rest of its snapshot, the limit too, as its row was last written, which a mere reading on
    /// the slow path may do. When a plan that never resets began shows nowhere.
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
    /// Status and numbers, what a repetition has to tell again; the same for any plan, state and instant.
    var numbers: Answer {
        var numbers = self
        numbers.snapshot = UsageSnapshot(
            plan: .paid,
            state: .active,
            period: snapshot.period,
            used: snapshot.used,
            held: snapshot.held,
            limit: snapshot.limit,
            denialReason: snapshot.denialReason,
            startedAt: at("2026-01-01"),
            observedAt: at("2026-01-01")
        )
        return numbers
    }

    /// The numbers of the first outcome, as both the first answer and its repetitions tell them.
    var firstNumbers: Answer {
        var first = numbers
        first.isReplay = false
        first.crossed = nil
        return first
    }
}
