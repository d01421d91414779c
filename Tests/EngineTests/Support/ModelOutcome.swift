import TestSupport
import Usage

@testable import Engine

extension ReferenceModel {
    /// What the model does with a request, as the engine's outcome.
    mutating func outcome(of operation: EngineOperation, user: UserID, at now: Instant) -> Outcome {
        do {
            switch operation {
            case .batched(let operation, let parts):
                return .answer(try answer(to: operation, parts: parts, user: user, at: now))
            case .unbatched(let operation): return try outcome(of: operation, user: user, at: now)
            }
        } catch let error as ReferenceModel.Failure {
            return .failure(EngineError(error))
        } catch {
            return .failure(EngineError(.internal, "\(error)"))
        }
    }

    private mutating func answer(
        to operation: BatchedOperation,
        parts: MessageParts?,
        user: UserID,
        at now: Instant
    ) throws -> Answer {
        switch operation {
        case .consume(let messages, nil): consume(user, messages: messages, parts: parts, at: now)
        case .consume(let messages, let key?): try consume(user, messages: messages, parts: parts, key: key, at: now)
        case .reserve(let messages, let key, let ttlSeconds):
            try reserve(user, messages: messages, parts: parts, key: key, ttlSeconds: ttlSeconds, at: now)
        case .commit(let messages, let key): try commit(user, messages: messages, key: key, at: now)
        case .release(let key): try release(user, key: key, at: now)
        case .check(let messages): check(user, messages: messages, parts: parts, at: now)
        case .usage: usage(user, parts: parts, at: now)
        }
    }

    private mutating func outcome(of operation: UnbatchedOperation, user: UserID, at now: Instant) throws -> Outcome {
        switch operation {
        case .usageInPeriod(let period, let parts):
            return usage(user, period: period, parts: parts, at: now).map { .answer($0) } ?? .failure(.noSuchPeriod)
        case .allowances:
            return .failure(EngineError(.internal, "the model has no report of allowances"))
        case .history(let months):
            return .periodUsages(history(user, months: months, at: now))
        case .change(.setPlan(let change), _):
            return .answer(try setPlan(change, at: now))
        case .change(.grant(let grant), _):
            return .answer(try self.grant(user, grant, at: now))
        case .change(.resetUsage(let period, let parts), _):
            let answer = resetUsage(user, period: period, parts: parts, at: now)
            return answer.map { .answer($0) } ?? .failure(.noSuchPeriod)
        case .change(.closeWindow(let parts), _):
            return closeWindow(user, parts: parts, at: now).map { .answer($0) } ?? .failure(.noSuchPeriod)
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
            case .stateDoesNotFit, .tooLarge, .past: EngineError(.badArgument, "\(error)")
            }
    }
}

extension Outcome {
    /// Without what is not specified. Of an answer about a period other than the current one, only the numbers are: the
    /// rest, also the limit, is as its row was last written, which a read on the slow path may do. The start of a plan
    /// that never resets is not shown.
    /// Of parts it shows nothing, and what the answer to a change shows of them is not specified.
    func comparable(of operation: EngineOperation, in current: BillingPeriod) -> Outcome {
        if case .failure(let error) = self, case .unbatched = operation { return .failure(EngineError(error.code, "")) }
        guard case .answer(var answer) = self else { return self }
        answer.snapshot.settleBalances()
        if case .unbatched = operation { answer.snapshot.parts = [] }
        if answer.snapshot.period != current {
            answer = answer.numbers
            answer.snapshot.limit = nil
            answer.snapshot.parts = []
            return .answer(answer)
        }
        if answer.snapshot.plan.cycle == .lifetime { answer.snapshot.startedAt = at("2026-01-01") }
        answer.compareParts()
        return .answer(answer)
    }
}

extension UsageSnapshot {
    /// Lets the snapshot have the balances that answers show.
    mutating func settleBalances() { set(balances) }
}

extension Answer {
    /// Leaves out what no answer shows of parts: the count of the fallback, the window of a limit that has none, and of
    /// a repetition's limits all but the numbers.
    mutating func compareParts() {
        let offered = fallback?.model
        for index in snapshot.parts.indices {
            if isRepeated { snapshot.parts[index] = snapshot.parts[index].numbers }
            snapshot.parts[index].fallback =
                snapshot.parts[index].part.kind == .model
                ? offered.map { PartUsage.Fallback(model: $0, limit: nil, counter: PartCounter()) } : nil
            guard snapshot.parts[index].limit?.window == nil else { continue }
            let counter = snapshot.parts[index].counter
            snapshot.parts[index].counter = PartCounter()
            snapshot.parts[index].counter.used = counter.used
            snapshot.parts[index].counter.held = counter.held
        }
    }

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
        numbers.snapshot.parts = snapshot.parts.map(\.numbers)
        numbers.snapshot.set(snapshot.balances)
        return numbers
    }

    /// The numbers of the first outcome, which the first answer and its repetitions have in common.
    var firstNumbers: Answer {
        var first = numbers
        first.isRepeated = false
        (first.crossed, first.isCrossing) = (nil, false)
        return first
    }
}

extension PartUsage {
    /// What a repetition must repeat; the rest is constant.
    fileprivate var numbers: PartUsage {
        var numbers = PartUsage(part, limit: nil)
        guard let limit else { return numbers }
        let window = limit.window.map { Plan.Window(messages: $0.messages, seconds: 60) }
        numbers = PartUsage(part, limit: PlanLimit(limit.kind, "*", allowance: limit.allowance, window: window))
        (numbers.counter.used, numbers.counter.held) = (counter.used, counter.held)
        guard window != nil else { return numbers }
        (numbers.counter.windowUsed, numbers.counter.windowHeld) = (counter.windowUsed, counter.windowHeld)
        return numbers
    }
}
