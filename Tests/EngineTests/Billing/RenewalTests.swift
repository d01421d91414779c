import TestSupport
import Testing
import Usage

@testable import Engine

@Suite("The renewal of a store's subscription")
struct RenewalTests {
    private let bob = user(2)
    private let first = "2026-12-05T12:00:00Z"
    private let second = "2027-01-05T12:00:00Z"

    private func fresh() async throws -> TestDatabase { try await .withProducts(at: at("2026-11-10T12:00:00Z")) }

    private func report(
        _ database: TestDatabase,
        _ time: String,
        _ kind: String,
        _ values: [String: String] = [:]
    ) async throws {
        var effect: [String: Any & Sendable] = ["kind": kind, "transaction": "T"]
        for (name, value) in values { effect[name] = value }
        let answer = try await database.psql.ingest(Event(kind + time, "2026-11-10T\(time)Z", by: ["\(ada)"], effect))
        #expect(answer["outcome"] == "applied", "\(kind)")
    }

    private func buy(_ database: TestDatabase) async throws {
        try await report(
            database,
            "08:00:00",
            "purchased",
            ["product": "monthly", "expires": first, "period": "normal"]
        )
    }

    private func usage(
        _ engine: EngineHarness,
        _ user: UserID,
        in period: BillingPeriod? = nil
    ) async throws -> Answer {
        let outcome = try await engine.execute(user, period.map { .usageInPeriod($0) } ?? .usage)
        return try #require(outcome.answer)
    }

    private func renews(_ engine: EngineHarness, _ user: UserID) async throws -> Instant? {
        try await usage(engine, user).renews
    }

    @Test("is the date of the next charge, in state active only")
    func states() async throws {
        try await EngineHarness.serving(fresh(), lanes: 1) { database, engine in
            #expect(try await renews(engine, ada) == nil, "of an unknown user")
            try await buy(database)
            #expect(try await renews(engine, ada) == at(first))
            _ = try await engine.execute(ada, .consume(1))
            #expect(try await renews(engine, ada) == at(first), "from a usage row")
            try await report(database, "08:10:00", "renewed", ["expires": second])
            #expect(try await renews(engine, ada) == at(second))
            try await report(database, "08:20:00", "cancelled")
            #expect(try await renews(engine, ada) == nil)
            try await report(database, "08:30:00", "uncancelled")
            #expect(try await renews(engine, ada) == at(second))
            try await report(database, "08:40:00", "grace_period", ["grace_until": second])
            #expect(try await renews(engine, ada) == nil)
            try await report(database, "08:50:00", "renewed", ["expires": second])
            #expect(try await renews(engine, ada) == at(second))
            try await report(database, "09:00:00", "revoked")
            #expect(try await renews(engine, ada) == nil)
            try await report(database, "09:10:00", "reinstated")
            #expect(try await renews(engine, ada) == at(second))
            try await database.moveClock(to: at(second))
            #expect(try await renews(engine, ada) == nil, "of an expired subscription")
        }
    }

    @Test("has the next plan; with a billing issue, the end of the grace period is shown")
    func nextPlan() async throws {
        try await EngineHarness.serving(fresh(), lanes: 1) { database, engine in
            try await buy(database)
            #expect(try await usage(engine, ada).nextPlan == nil)
            try await report(database, "08:10:00", "product_changed", ["next_product": "large"])
            #expect(try await usage(engine, ada).nextPlan == "pro")
            for _ in 0..<3 {
                // The first on the slow path, the second on the fast path.
                let requests: [(user: UserID, operation: EngineOperation)] = [(ada, .consume(1)), (ada, .usage)]
                let answers = try await engine.execute(requests).compactMap(\.answer)
                #expect(answers.map(\.nextPlan) == [nil, "pro"])
                #expect(try await usage(engine, ada).nextPlan == "pro", "by a read")
            }
            try await report(database, "08:20:00", "cancelled")
            #expect(try await usage(engine, ada).nextPlan == nil)
            try await report(database, "08:30:00", "uncancelled")
            #expect(try await usage(engine, ada).nextPlan == "pro")
            try await report(database, "08:40:00", "product_changed", ["next_product": "monthly"])
            #expect(try await usage(engine, ada).nextPlan == nil, "reversed")
            try await report(database, "08:50:00", "grace_period", ["grace_until": second])
            for _ in 0..<3 {
                #expect(try await usage(engine, ada).graceUntil == at(second))
                let requests: [(user: UserID, operation: EngineOperation)] = [(ada, .consume(1)), (ada, .usage)]
                let answers = try await engine.execute(requests).compactMap(\.answer)
                #expect(answers.map(\.graceUntil) == [nil, at(second)])
            }
            try await database.moveClock(to: at(second))
            #expect(try await usage(engine, ada).graceUntil == nil)
        }
    }

    @Test("is absent for trials, declared plans and subscriptions without an end")
    func others() async throws {
        try await EngineHarness.serving(fresh(), lanes: 1) { database, engine in
            _ = try await engine.execute(bob, .consume(1))
            #expect(try await renews(engine, bob) == nil, "of a trial that a message started")
            let declared = PlanChange(user: bob, plan: "paid", expiresAt: at(first))
            _ = try await engine.execute(bob, .setPlan(declared))
            #expect(try await renews(engine, bob) == nil)
            let trial = Event.purchased("trial", expires: first, period: "trial")
            try await database.psql.ingest(Event("trial", "2026-11-10T08:00:00Z", by: ["\(user(3))"], trial))
            let of3 = try await usage(engine, user(3))
            #expect(of3.snapshot.state == .trial && of3.renews == nil)
            let endless: [String: Any & Sendable] = [
                "kind": "purchased", "transaction": "endless", "product": "monthly",
            ]
            try await database.psql.ingest(Event("endless", "2026-11-10T08:00:00Z", by: ["\(user(4))"], endless))
            let of4 = try await usage(engine, user(4))
            #expect(of4.snapshot.state == .active && of4.renews == nil)
            try await buy(database)
            #expect(try await renews(engine, ada) == at(first))
            _ = try await engine.execute(ada, .setPlan(PlanChange(user: ada, plan: "paid", expiresAt: at(first))))
            #expect(try await renews(engine, ada) == nil, "of a subscription that a declared plan replaced")
        }
    }

    @Test("is the first payment of a store's trial that has the regular plan")
    func trialAfterAnother() async throws {
        try await EngineHarness.serving(fresh(), lanes: 1) { database, engine in
            _ = try await engine.execute(ada, .consume(1))
            try await database.moveClock(to: at("2026-11-14T00:00:00Z"))
            let end = "2026-11-21T00:00:00Z"
            let trial = Event.purchased("T", expires: end, period: "trial")
            try await database.psql.ingest(Event("trial", "2026-11-14", by: ["\(ada)"], trial))
            let usage = try await usage(engine, ada)
            #expect(usage.snapshot.plan.name == "paid" && usage.snapshot.state == .active && usage.renews == at(end))
            let cancelled: [String: Any & Sendable] = ["kind": "cancelled", "transaction": "T"]
            try await database.psql.ingest(Event("no", "2026-11-14T00:00:01Z", cancelled))
            #expect(try await renews(engine, ada) == nil, "of a cancelled trial")
        }
    }

    @Test("is reported by USAGE alone, whichever statement it shares with other requests")
    func statements() async throws {
        try await EngineHarness.serving(fresh(), lanes: 1) { database, engine in
            try await buy(database)
            _ = try await engine.execute(bob, .setPlan(PlanChange(user: bob, plan: "paid", expiresAt: at(first))))
            for (others, used) in [
                // Slow path for a new row; fast path; slow path for the hold; a read with nothing left.
                (EngineOperation.consume(1), 1), (.consume(1), 2),
                (.reserve(1, key: messageKey("a"), ttlSeconds: 60), 2),
                (.consume(797), 799), (.consume(9), 799), (.consume(9), 799),
            ] {
                let requests: [(user: UserID, operation: EngineOperation)] = [
                    (ada, .usage), (bob, .usage), (ada, others), (bob, others), (ada, .usage), (bob, .usage),
                    (ada, .check(1)),
                ]
                let answers = try await engine.execute(requests).compactMap(\.answer)
                #expect(answers.count == requests.count)
                let end = at(first)
                #expect(answers.map(\.renews) == [end, nil, nil, nil, end, nil, nil], "\(others)")
                #expect(answers[4].snapshot.used == used && answers[5].snapshot.used == used, "\(others)")
            }
            #expect(try await usage(engine, ada, in: billingPeriod("2026-11")).renews == at(first))
        }
    }

    @Test("is published when it appears, moves and disappears")
    func subscribed() async throws {
        try await EngineHarness.serving(fresh(), lanes: 1) { database, engine in
            #expect(try await engine.outcomes(of: [engine.subscribe([ada, bob], connection: 1)]) == [.subscribed])
            func waitForNews(_ fits: @escaping (Answer) -> Bool) async throws {
                try await waitUntil("news") { engine.mailbox.publications.last.map { fits($0.answer) } ?? false }
            }
            try await buy(database)
            try await waitForNews { $0.renews == at(first) }
            try await report(database, "08:10:00", "renewed", ["expires": second])
            try await waitForNews { $0.renews == at(second) }
            try await report(database, "08:15:00", "product_changed", ["next_product": "large"])
            try await waitForNews { $0.nextPlan == "pro" }
            try await report(database, "08:20:00", "cancelled")
            try await waitForNews { $0.snapshot.state == .cancelled && $0.renews == nil }
            try await report(database, "08:30:00", "uncancelled")
            try await waitForNews { $0.renews == at(second) }
            _ = try await engine.execute(ada, .consume(1))
            try await waitForNews { $0.snapshot.used == 1 && $0.renews == at(second) }
            // Declaring the same plan, state and end removes only the renewal.
            _ = try await engine.execute(ada, .setPlan(PlanChange(user: ada, plan: "paid", expiresAt: at(second))))
            try await waitForNews { $0.renews == nil }
        }
    }
}
