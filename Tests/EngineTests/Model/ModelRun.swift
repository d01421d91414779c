import Postgres
import TestSupport
import Testing
import Usage

@testable import Engine

/// Executes a history with the model and with the engine, and compares the outcomes.
struct ModelRun {
    let seed: UInt64
    let database: TestDatabase
    let harness: EngineHarness
    private(set) var model: ReferenceModel
    private var generator: HistoryGenerator
    private var stepNumber = 0
    private(set) var compared = 0

    init(
        seed: UInt64,
        database: TestDatabase,
        harness: EngineHarness,
        unknownUsersPolicy: UnknownUsersPolicy
    ) async throws {
        self.seed = seed
        self.database = database
        self.harness = harness
        generator = HistoryGenerator(seed: seed)
        model = ReferenceModel(unknownUsersPolicy: unknownUsersPolicy)
        for plan in generator.initialPlans { try await define(plan) }
    }

    /// - Returns: false once an answer differed, because then all later ones may.
    mutating func step() async throws -> Bool {
        stepNumber += 1
        // Before this step, because a step returns early.
        if stepNumber % 5 == 0 {
            guard try await compareCurrentUsage() else { return false }
        }
        switch generator.step(model) {
        case .requests(let requests):
            return try await compare(requests)
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
        case .consumeBySQL(let user, let messages, let parts):
            let expected = model.consume(user, messages: messages, parts: parts, at: generator.now)
            let names = [
                parts?.model.map { "p_model => '\($0.text)'" }, parts?.member.map { "p_member => '\($0)'::uuid" },
            ]
            let arguments = ["p_user_id => '\(user)'", "p_messages => \(messages)"] + names.compactMap(\.self)
            let call = "increment_and_check_usage(\(arguments.joined(separator: ", ")))"
            let fields = try await SQLAnswer.read("select * from \(call)", from: database.psql)
            return expect(
                SQLAnswer.lines(fields),
                equals: SQLAnswer.lines(SQLAnswer.fields(of: expected)),
                call
            )
        }
        return true
    }

    private mutating func define(_ plan: Plan) async throws {
        model.setPlanDefinition(plan)
        try await database.psql.run { connection in try PlanRow.write(plan, connection) }
    }

    /// The view `current_usage` must show each user as CHECK would answer, and REPORT its sums.
    private mutating func compareCurrentUsage() async throws -> Bool {
        // One statement, because planning it takes longer than executing it.
        let users = generator.users.map(\.description).joined(separator: ",")
        let rows = try await database.psql.run { connection in
            try SQLAnswer.rows(
                "select * from current_usage where user_id = any('{\(users)}')",
                Parameters(),
                connection
            )
        }
        let rowsByUser = Dictionary(grouping: rows) { $0["user"] }
        for user in generator.users {
            guard let rows = rowsByUser[user.description], var fields = rows.first else { continue }
            if fields["held"] == "0" { fields["held"] = .some(nil) }
            let expected = SQLAnswer.lines(SQLAnswer.fields(of: model.check(user, at: generator.now)))
            let place = "current_usage of user \(user.low & 0xFF)"
            guard rows.count == 1, expect(SQLAnswer.lines(fields), equals: expected, place) else { return false }
        }
        let sums = try await database.psql.rows(
            """
            select count(*), coalesce(sum(used), 0), count(*) filter (where tier = 'blocked') from current_usage
            where is_open and updated_at is not null
            """
        )
        guard case .report(let report) = try await harness.read(.report(.open)) else { return false }
        return expect(
            ["\(report.users)|\(report.messages)|\(report.users(in: .blocked))"],
            equals: sums,
            "REPORT open"
        )
    }

    private mutating func compare(_ requests: [(user: UserID, operation: EngineOperation)]) async throws -> Bool {
        let expected = requests.map { model.outcome(of: $0.operation, user: $0.user, at: generator.now) }
        let outcomes = try await harness.execute(requests)
        for (index, (user, operation)) in requests.enumerated() {
            let place = "request \(index + 1) of \(requests.count): user \(user.low & 0xFF) \(operation)"
            let actual = comparable(outcomes[index], of: operation)
            guard expect(actual, equals: comparable(expected[index], of: operation), place) else { return false }
        }
        return true
    }

    /// Without the message of an error, and without the start of a plan that never resets, which no answer shows. Its
    /// cycle may have been edited since. What the answer to a change shows of parts is not specified.
    private func comparable(_ outcome: Outcome, of operation: EngineOperation) -> Outcome {
        switch outcome {
        case .failure(let error):
            return .failure(EngineError(error.code, ""))
        case .answer(var answer):
            answer.snapshot.settleBalances()
            if answer.snapshot.plan.cycle == .lifetime || answer.snapshot.period == BillingPeriod(planNamed: "free") {
                answer.snapshot.startedAt = answer.snapshot.observedAt
            }
            if case .unbatched = operation { answer.snapshot.parts = [] }
            answer.compareParts()
            return .answer(answer)
        default:
            return outcome
        }
    }

    private mutating func expect<Value: Equatable>(_ actual: Value, equals expected: Value, _ place: String) -> Bool {
        compared += 1
        guard actual != expected else { return true }
        Issue.record(
            """
            seed \(seed), step \(stepNumber), \(place), at \(generator.now)
            actual \(difference(actual, from: expected))
            """
        )
        return false
    }

    /// The parts that differ, each with the model's value.
    private func difference(_ actual: Any, from expected: Any, path: String = "") -> String {
        let (parts, expectedParts) = (Mirror(reflecting: actual).children, Mirror(reflecting: expected).children)
        guard !parts.isEmpty, parts.count == expectedParts.count, !(actual is BillingPeriod), !(actual is Instant)
        else {
            return "\(actual)" == "\(expected)" ? "" : "\(path): \(actual), expected \(expected)\n"
        }
        return zip(parts, expectedParts).map { actual, expected in
            difference(actual.value, from: expected.value, path: "\(path).\(actual.label ?? "")")
        }.joined()
    }
}
