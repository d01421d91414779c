import TestSupport
import Testing
import Usage

@testable import Engine

/// Runs a history against the model and against the engine, and compares what each request is told.
struct ModelRun {
    let seed: UInt64
    let database: TestDatabase
    let harness: EngineHarness
    private(set) var model: ReferenceModel
    private var generator: HistoryGenerator
    private var stepNumber = 0
    private(set) var compared = 0

    init(seed: UInt64, database: TestDatabase, harness: EngineHarness, unknownUsers: UnknownUsers) async throws {
        self.seed = seed
        self.database = database
        self.harness = harness
        generator = HistoryGenerator(seed: seed)
        model = ReferenceModel(unknownUsers: unknownUsers)
        for plan in generator.initialPlans { try await define(plan) }
    }

    /// - Returns: false once an answer differed, after which everything would.
    mutating func step() async throws -> Bool {
        stepNumber += 1
        switch generator.step(model) {
        case .requests(let asked):
            return try await compare(asked)
        case .moveClock(let instant):
            try await database.moveClock(to: instant)
        case .setLimit(let user, let period, let limit):
            model.setLimit(user, period: period, limit: limit)
            try await database.psql.execute(
                """
                update message_usage set "limit" = \(limit.map(String.init) ?? "null")
                where user_id = '\(user)' and billing_period = '\(period)'
                """
            )
        case .definePlan(let plan):
            try await define(plan)
        case .consumeBySQL(let user, let messages):
            let expected = model.consume(user, messages: messages, at: generator.now)
            let fields = try await SQLAnswer.read(
                "select * from increment_and_check_usage('\(user)', \(messages))",
                from: database.psql
            )
            return expect(fields, equals: SQLAnswer.fields(of: expected), "increment_and_check_usage \(messages)")
        }
        return true
    }

    private mutating func define(_ plan: Plan) async throws {
        model.setPlanDefinition(plan)
        try await database.psql.run { connection in try PlanRow.write(plan, connection) }
    }

    private mutating func compare(_ asked: [(user: UserID, operation: EngineOperation)]) async throws -> Bool {
        let expected = asked.map { expectedOutcome(of: $0.user, $0.operation) }
        let outcomes = try await harness.execute(asked)
        for (index, (user, operation)) in asked.enumerated() {
            let place = "request \(index + 1) of \(asked.count): user \(user.low & 0xFF) \(operation)"
            guard expect(comparable(outcomes[index]), equals: comparable(expected[index]), place) else { return false }
        }
        return true
    }

    private mutating func expectedOutcome(of user: UserID, _ operation: EngineOperation) -> ExpectedOutcome {
        let now = generator.now
        switch operation {
        case .consume(let messages, _): return .answer(model.consume(user, messages: messages, at: now))
        case .reserve, .commit, .release: preconditionFailure("the keyed histories have a run of their own")
        case .check(let messages): return .answer(model.check(user, messages: messages, at: now))
        case .usage: return .answer(model.usage(user, at: now))
        case .usageInPeriod(let period):
            return model.usage(user, period: period, at: now).map { .answer($0) } ?? .failure(.notFound)
        case .history(let count): return .history(model.history(user, months: count, at: now))
        case .resetUsage(let period):
            return model.resetUsage(user, period: period, at: now).map { .answer($0) } ?? .failure(.notFound)
        case .setPlan(let change):
            do {
                return .answer(try model.setPlan(change, at: now))
            } catch {
                return .failure(error.code)
            }
        case .grant(let messages, let key, _):
            do {
                return .answer(try model.grant(user, messages: messages, key: key, at: now))
            } catch {
                return .failure(error.code)
            }
        case .attributed: preconditionFailure("histories have no actors")
        case .forget:
            model.forget(user)
            return .done
        }
    }

    private enum ExpectedOutcome: Equatable {
        case answer(Answer)
        case history([PeriodUsage])
        case done
        case failure(EngineError.Code)
    }

    private func comparable(_ outcome: Outcome) -> ExpectedOutcome {
        switch outcome {
        case .answer(let answer): comparable(ExpectedOutcome.answer(answer))
        case .history(let periods): .history(periods)
        case .done: .done
        case .failure(let error): .failure(error.code)
        // No lane answers so.
        case .report, .periods, .subscribed: .failure(.internal)
        }
    }

    /// A plan that never resets has no day that any answer counts from: when it started is told to nobody.
    private func comparable(_ outcome: ExpectedOutcome) -> ExpectedOutcome {
        guard case .answer(var answer) = outcome, answer.snapshot.plan.cycle == .lifetime else { return outcome }
        answer.snapshot.startedAt = answer.snapshot.observedAt
        return .answer(answer)
    }

    private mutating func expect<Value: Equatable>(_ told: Value, equals expected: Value, _ place: String) -> Bool {
        compared += 1
        guard told != expected else { return true }
        Issue.record(
            """
            seed \(seed), step \(stepNumber), \(place), at \(generator.now)
            told \(difference(told, from: expected))
            """
        )
        return false
    }

    /// Only the parts that differ, with what the model says.
    private func difference(_ told: Any, from expected: Any, path: String = "") -> String {
        let (toldParts, expectedParts) = (Mirror(reflecting: told).children, Mirror(reflecting: expected).children)
        guard !toldParts.isEmpty, toldParts.count == expectedParts.count, !(told is BillingPeriod), !(told is Instant)
        else {
            return "\(told)" == "\(expected)" ? "" : "\(path): \(told), expected \(expected)\n"
        }
        return zip(toldParts, expectedParts).map { told, expected in
            difference(told.value, from: expected.value, path: "\(path).\(told.label ?? "")")
        }.joined()
    }
}
