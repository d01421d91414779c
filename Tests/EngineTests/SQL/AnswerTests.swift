import Postgres
import TestSupport
import Testing
import Usage

@testable import Engine

@Suite("An answer in SQL")
struct SQLAnswerTests {
    private static let plans = [
        Plan(name: "paid", label: "Premium", cycle: .monthly, allowance: 800),
        Plan(name: "pro", label: "Pro", cycle: .monthly, allowance: nil),
        Plan(name: "early", label: "Früh", cycle: .monthly, allowance: 7, gentlePercent: 0, prominentPercent: 50),
        Plan(name: "week", label: "Week", cycle: .weekly, timeZone: "Asia/Tokyo", allowance: 30),
        Plan(name: "day", label: "Day", cycle: .daily, allowance: 20),
        Plan(name: "trial", label: "Trial", cycle: .trial(days: 3), allowance: 100),
        Plan(name: "free", label: "Free", cycle: .lifetime, allowance: 0),
        Plan(
            name: "hours",
            label: "Hours",
            cycle: .monthly,
            allowance: 40,
            window: Plan.Window(messages: 10, seconds: 10_800)
        ),
        Plan(
            name: "endless",
            label: "Endless",
            cycle: .monthly,
            allowance: nil,
            window: Plan.Window(messages: 10, seconds: 300_000),
            isEnforced: false
        ),
        Plan(
            name: "test",
            label: "Test",
            cycle: .trial(days: 3),
            allowance: 20,
            window: Plan.Window(messages: 5, seconds: 86_400)
        ),
        Plan(name: "taste", label: "Taste", cycle: .lifetime, allowance: 3),
    ]

    @Test(
        "has the same fields as the line protocol for the same snapshot, with and without parts",
        arguments: SeededGenerator.seeds
    )
    func agreement(seed: UInt64) async throws {
        print("random snapshots with seed \(seed)")
        let database = try await TestDatabase.fresh()
        try await database.psql.run { connection in
            for plan in SQLAnswerTests.plans { try PlanRow.write(plan, connection) }
        }
        var random = SeededGenerator(seed: seed)
        for _ in 0..<800 {
            let snapshot = randomSnapshot(&random)
            let messages = random.element(of: [0, 1, 1, 2, 5, 801])
            var after = snapshot
            let answer: Answer
            if messages == 0 {
                answer = snapshot.usage(of: user(1))
            } else {
                answer = after.consume(messages, of: user(1))
            }
            let counted = answer.status == .allowed ? messages : 0
            let fields = try await database.psql.run { connection in
                try SQLAnswerTests.answer(to: answer.snapshot, messages: messages, counted: counted, connection)
            }
            let expected = SQLAnswer.fields(of: answer)
            for name in SQLAnswer.names where fields[name] != expected[name] {
                let (one, other) = (fields[name] ?? nil, expected[name] ?? nil)
                Issue.record("seed \(seed): \(name) is \(one ?? "null"), expected \(other ?? "null"): \(snapshot)")
            }
            if fields != expected { return }
        }
    }

    private static func answer(
        /// After the requested operation.
        to snapshot: UsageSnapshot,
        messages: Int,
        counted: Int,
        _ connection: DatabaseConnection
    ) throws -> SQLAnswer.Fields {
        var parameters = Parameters()
        parameters.append(uuid: (user(1).high, user(1).low))
        parameters.append(text: snapshot.plan.name)
        parameters.append(text: snapshot.state.rawValue)
        parameters.append(text: snapshot.denialReason?.rawValue)
        parameters.append(text: snapshot.period.label)
        parameters.append(int32: Int32(snapshot.used))
        parameters.append(int32: Int32(snapshot.held))
        parameters.append(int32: snapshot.limit.map { Int32($0) })
        for instant in [snapshot.startedAt, snapshot.resetsAt, snapshot.expiresAt] {
            parameters.append(timestamptz: instant?.microsecondsSince1970)
        }
        parameters.append(text: snapshot.previousPlan)
        parameters.append(text: snapshot.renews.map { $0 ? "t" : "f" })
        parameters.append(timestamptz: snapshot.observedAt.microsecondsSince1970)
        parameters.append(int64: Int64(counted))
        parameters.append(int32: Int32(messages))
        parameters.append(timestamptz: snapshot.window?.openedAt?.microsecondsSince1970)
        parameters.append(timestamptz: snapshot.window?.endsAt?.microsecondsSince1970)
        parameters.append(int32: snapshot.window.map { _ in Int32(snapshot.windowUsed) })
        parameters.append(int32: snapshot.window.map { _ in Int32(snapshot.windowHeld) })
        parameters.append(int32: (snapshot.window?.limit).map { Int32($0) })
        parameters.append(int32: (snapshot.entitlement.balances?.messages).map { Int32($0) })
        parameters.append(timestamptz: snapshot.entitlement.balances?.expiresAt?.microsecondsSince1970)
        let sql = """
            select answer.* from headroom.format_answer(
                $1, row(
                    $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, 1, $15, $17, $18, $19, $20, $21, $22, $23
                )::headroom.usage_snapshot, $16, \(SQLAnswer.parts(snapshot.parts))
            ) as answer
            """
        return try SQLAnswer.rows(sql, parameters, connection)[0]
    }

    private func randomWindow(
        _ window: Plan.Window,
        _ observedAt: Instant,
        _ random: inout SeededGenerator
    ) -> UsageWindow {
        if random.chance(25) { return UsageWindow(limit: window.messages) }
        let length = Int64(window.seconds) * 1_000_000
        let elapsed = Int64.random(in: 0..<length, using: &random)
        let openedAt = Instant(microsecondsSince1970: observedAt.microsecondsSince1970 - elapsed)
        return UsageWindow(
            limit: window.messages,
            openedAt: openedAt,
            endsAt: Instant(microsecondsSince1970: openedAt.microsecondsSince1970 + length)
        )
    }

    private static func period(of plan: Plan) -> BillingPeriod {
        switch plan.cycle {
        case .monthly: billingPeriod("2026-11")
        case .weekly: billingPeriod("2026-W53")
        case .daily: billingPeriod("2026-11-30")
        case .trial, .lifetime: BillingPeriod(planNamed: plan.name)
        }
    }

    private func randomSnapshot(_ random: inout SeededGenerator) -> UsageSnapshot {
        let plan = random.element(of: SQLAnswerTests.plans)
        let observedAt = Instant(microsecondsSince1970: Int64.random(in: 0..<4_000_000_000_000_000, using: &random))
        let limit = random.chance(15) ? nil : random.chance(30) ? random.element(of: [0, 1, 5, 1_000]) : plan.allowance
        let percent = random.element(of: [0, 1, 50, 79, 80, 94, 95, 99, 100, 130])
        let states: [(SubscriptionState, DenialReason?)] =
            switch plan.cycle {
            case .monthly, .weekly, .daily:
                [
                    (.active, nil), (.active, nil), (.cancelled, nil), (.gracePeriod, nil),
                    (.billingRetry, .billingRetry), (.expired, .expired), (.revoked, .revoked),
                ]
            case .trial:
                [(.trial, nil), (.trial, nil), (.trial, .trialEnded), (.expired, .expired), (.revoked, .revoked)]
            case .lifetime: [(.free, nil), (.free, .noSubscription), (.expired, .expired), (.revoked, .revoked)]
            }
        let (state, denialReason) = random.element(of: states)
        func near(_ range: ClosedRange<Int64>) -> Instant {
            let microseconds = Int64.random(in: range, using: &random)
            return Instant(microsecondsSince1970: observedAt.microsecondsSince1970 + microseconds)
        }
        let month = Int64(31 * 86_400_000_000)
        let window = plan.window.map { randomWindow($0, observedAt, &random) }
        let isOpen = window?.openedAt != nil
        let resetsAt = plan.cycle.isPeriodic ? near(1...month) : nil
        // What is paid mostly ends with the period.
        let paidUntil = random.element(of: [resetsAt, window?.endsAt, near(-month...month), nil])
        var snapshot = UsageSnapshot(
            plan: plan,
            state: state,
            period: SQLAnswerTests.period(of: plan),
            used: random.chance(3) ? UsageSnapshot.countMaximum - 1 : max(0, (limit ?? 100) * percent / 100),
            held: random.chance(80) ? 0 : random.element(of: [1, 3]),
            limit: limit,
            window: window,
            windowUsed: isOpen ? random.element(of: [1, 3, 7, 8, 9, 10, 12]) : 0,
            windowHeld: isOpen && random.chance(20) ? random.element(of: [1, 3]) : 0,
            denialReason: denialReason,
            startedAt: near(-month...(random.chance(10) ? month : 0)),
            resetsAt: resetsAt,
            expiresAt: plan.isTrial ? paidUntil ?? near(-month...month) : paidUntil,
            previousPlan: random.chance(30) ? "paid" : nil,
            renews: random.element(of: [nil, true, false]),
            observedAt: observedAt
        )
        if random.chance(60) { snapshot.parts = randomParts(observedAt, &random) }
        if random.chance(30) {
            let messages = random.element(of: [1, 5, min(limit ?? 50, 50)])
            snapshot.set(Balances(messages: messages, expiresAt: random.chance(50) ? near(1...month) : nil))
        }
        return snapshot
    }

    private func randomParts(_ observedAt: Instant, _ random: inout SeededGenerator) -> [PartUsage] {
        let (model, other): (ModelName, ModelName) = ("large-2", "small")
        var parts: [PartUsage] = []
        if random.chance(70) {
            let limit = randomLimit(.model, "large*", &random)
            let otherLimit = randomLimit(.model, "small", &random)
            let fallback = PartUsage.Fallback(
                model: other,
                limit: otherLimit,
                counter: randomCounter(otherLimit, observedAt, &random)
            )
            parts.append(
                PartUsage(
                    .model(model),
                    limit: limit,
                    counter: randomCounter(limit, observedAt, &random),
                    fallback: limit?.fallback == nil ? nil : fallback
                )
            )
        }
        if parts.isEmpty || random.chance(50) {
            let limit = randomLimit(.member, "*", &random)
            parts.append(
                PartUsage(.member(user(9)), limit: limit, counter: randomCounter(limit, observedAt, &random))
            )
        }
        return parts
    }

    private func randomLimit(
        _ kind: PlanLimit.Kind,
        _ name: String,
        _ random: inout SeededGenerator
    ) -> PlanLimit? {
        guard random.chance(85) else { return nil }
        return PlanLimit(
            kind,
            name,
            allowance: random.element(of: [nil, 0, 4, 10, 900]),
            window: random.element(of: [nil, Plan.Window(messages: 8, seconds: 7_200)]),
            weight: kind == .model ? random.element(of: [1, 1, 3]) : 1,
            fallback: kind == .model && random.chance(70) ? ModelName("small") : nil
        )
    }

    private func randomCounter(
        _ limit: PlanLimit?,
        _ observedAt: Instant,
        _ random: inout SeededGenerator
    ) -> PartCounter {
        var counter = PartCounter()
        guard let limit else { return counter }
        counter.used = random.element(of: [0, 1, 3, 4, 8, 10, 700])
        counter.held = random.chance(80) ? 0 : random.element(of: [1, 2])
        guard let window = limit.window.map({ randomWindow($0, observedAt, &random) }), window.openedAt != nil else {
            return counter
        }
        (counter.windowOpenedAt, counter.windowEndsAt) = (window.openedAt, window.endsAt)
        counter.windowUsed = random.element(of: [1, 3, 6, 7, 8, 11])
        counter.windowHeld = random.chance(80) ? 0 : 1
        return counter
    }
}
