import TestSupport
import Testing
import Usage

@testable import Engine

@Suite("The renewal of a store's subscription")
struct RenewalTests {
    private let ada = user(1)
    private let bob = user(2)
    private let first = "2026-12-05T12:00:00Z"
    private let second = "2027-01-05T12:00:00Z"

    private func fresh() async throws -> TestDatabase {
        let database = try await TestDatabase.fresh()
        try await database.stopClock(at: at("2026-11-10T12:00:00Z"))
        try await database.psql.mapProducts()
        return database
    }

    private func tell(
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
        try await tell(database, "08:00:00", "purchased", ["product": "monthly", "expires": first, "period": "normal"])
    }

    private func usage(
        _ store: EngineHarness,
        _ user: UserID,
        in period: BillingPeriod? = nil
    ) async throws -> Answer {
        let outcome = try await store.execute(user, period.map { .usageInPeriod($0) } ?? .usage)
        return try #require(outcome.answer)
    }

    private func renews(_ store: EngineHarness, _ user: UserID) async throws -> Instant? {
        try await usage(store, user).renews
    }

    @Test("is when the store charges again, in the state active alone")
    func states() async throws {
        let database = try await fresh()
        let store = EngineHarness(database.conninfo, lanes: 1)
        try await store.running {
            #expect(try await renews(store, ada) == nil, "of an unknown user")
            try await buy(database)
            #expect(try await renews(store, ada) == at(first))
            _ = try await store.execute(ada, .consume(1))
            #expect(try await renews(store, ada) == at(first), "from a usage row")
            try await tell(database, "08:10:00", "renewed", ["expires": second])
            #expect(try await renews(store, ada) == at(second))
            try await tell(database, "08:20:00", "cancelled")
            #expect(try await renews(store, ada) == nil)
            try await tell(database, "08:30:00", "uncancelled")
            #expect(try await renews(store, ada) == at(second))
            try await tell(database, "08:40:00", "grace_period", ["grace_until": second])
            #expect(try await renews(store, ada) == nil)
            try await tell(database, "08:50:00", "renewed", ["expires": second])
            #expect(try await renews(store, ada) == at(second))
            try await tell(database, "09:00:00", "revoked")
            #expect(try await renews(store, ada) == nil)
            try await tell(database, "09:10:00", "reinstated")
            #expect(try await renews(store, ada) == at(second))
            try await database.moveClock(to: at(second))
            #expect(try await renews(store, ada) == nil, "of an expired one")
        }
    }

    @Test("tells the plan that begins with it, and a payment problem tells the end of the grace period")
    func nextPlan() async throws {
        let database = try await fresh()
        let store = EngineHarness(database.conninfo, lanes: 1)
        try await store.running {
            try await buy(database)
            #expect(try await usage(store, ada).nextPlan == nil)
            try await tell(database, "08:10:00", "product_changed", ["next_product": "large"])
            #expect(try await usage(store, ada).nextPlan == "pro")
            for _ in 0..<3 {
                // Performed first, and counted then.
                let asked: [(user: UserID, operation: EngineOperation)] = [(ada, .consume(1)), (ada, .usage)]
                let answers = try await store.execute(asked).compactMap(\.answer)
                #expect(answers.map(\.nextPlan) == [nil, "pro"])
                #expect(try await usage(store, ada).nextPlan == "pro", "read")
            }
            try await tell(database, "08:20:00", "cancelled")
            #expect(try await usage(store, ada).nextPlan == nil)
            try await tell(database, "08:30:00", "uncancelled")
            #expect(try await usage(store, ada).nextPlan == "pro")
            try await tell(database, "08:40:00", "product_changed", ["next_product": "monthly"])
            #expect(try await usage(store, ada).nextPlan == nil, "taken back")
            try await tell(database, "08:50:00", "grace_period", ["grace_until": second])
            for _ in 0..<3 {
                #expect(try await usage(store, ada).graceUntil == at(second))
                let asked: [(user: UserID, operation: EngineOperation)] = [(ada, .consume(1)), (ada, .usage)]
                let answers = try await store.execute(asked).compactMap(\.answer)
                #expect(answers.map(\.graceUntil) == [nil, at(second)])
            }
            try await database.moveClock(to: at(second))
            #expect(try await usage(store, ada).graceUntil == nil)
        }
    }

    @Test("has no trial, no plan that was declared, and no subscription without an end")
    func others() async throws {
        let database = try await fresh()
        let store = EngineHarness(database.conninfo, lanes: 1)
        try await store.running {
            _ = try await store.execute(bob, .consume(1))
            #expect(try await renews(store, bob) == nil, "of a trial that a message started")
            let declared = PlanChange(user: bob, plan: "paid", expiresAt: at(first))
            _ = try await store.execute(bob, .setPlan(declared))
            #expect(try await renews(store, bob) == nil)
            let trial = Event.purchased("trial", expires: first, period: "trial")
            try await database.psql.ingest(Event("trial", "2026-11-10T08:00:00Z", by: ["\(user(3))"], trial))
            let of3 = try await usage(store, user(3))
            #expect(of3.snapshot.state == .trial && of3.renews == nil)
            let endless: [String: Any & Sendable] = [
                "kind": "purchased", "transaction": "endless", "product": "monthly",
            ]
            try await database.psql.ingest(Event("endless", "2026-11-10T08:00:00Z", by: ["\(user(4))"], endless))
            let of4 = try await usage(store, user(4))
            #expect(of4.snapshot.state == .active && of4.renews == nil)
            try await buy(database)
            #expect(try await renews(store, ada) == at(first))
            _ = try await store.execute(ada, .setPlan(PlanChange(user: ada, plan: "paid", expiresAt: at(first))))
            #expect(try await renews(store, ada) == nil, "of a subscription in whose place the same was declared")
        }
    }

    @Test("is the first payment, where a store's trial runs on the product's plan because the user's trial was spent")
    func trialAfterAnother() async throws {
        let database = try await fresh()
        let store = EngineHarness(database.conninfo, lanes: 1)
        try await store.running {
            _ = try await store.execute(ada, .consume(1))
            try await database.moveClock(to: at("2026-11-14T00:00:00Z"))
            let end = "2026-11-21T00:00:00Z"
            let trial = Event.purchased("T", expires: end, period: "trial")
            try await database.psql.ingest(Event("trial", "2026-11-14", by: ["\(ada)"], trial))
            let usage = try await usage(store, ada)
            #expect(usage.snapshot.plan.name == "paid" && usage.snapshot.state == .active && usage.renews == at(end))
            let cancelled: [String: Any & Sendable] = ["kind": "cancelled", "transaction": "T"]
            try await database.psql.ingest(Event("no", "2026-11-14T00:00:01Z", cancelled))
            #expect(try await renews(store, ada) == nil, "of a trial that is not going to be paid for")
        }
    }

    @Test("stands on USAGE alone, whichever statement the request shares with others of its user")
    func statements() async throws {
        let database = try await fresh()
        let store = EngineHarness(database.conninfo, lanes: 1)
        try await store.running {
            try await buy(database)
            _ = try await store.execute(bob, .setPlan(PlanChange(user: bob, plan: "paid", expiresAt: at(first))))
            for (others, used) in [
                // Performed, because the row is new; counted; performed because of the hold; read, with nothing left.
                (EngineOperation.consume(1), 1), (.consume(1), 2),
                (.reserve(1, key: messageKey("a"), ttlSeconds: 60), 2),
                (.consume(797), 799), (.consume(9), 799), (.consume(9), 799),
            ] {
                let asked: [(user: UserID, operation: EngineOperation)] = [
                    (ada, .usage), (bob, .usage), (ada, others), (bob, others), (ada, .usage), (bob, .usage),
                    (ada, .check(1)),
                ]
                let answers = try await store.execute(asked).compactMap(\.answer)
                #expect(answers.count == asked.count)
                let end = at(first)
                #expect(answers.map(\.renews) == [end, nil, nil, nil, end, nil, nil], "\(others)")
                #expect(answers[4].snapshot.used == used && answers[5].snapshot.used == used, "\(others)")
            }
            #expect(try await usage(store, ada, in: billingPeriod("2026-11")).renews == at(first))
        }
    }

    @Test("reaches watchers when it comes, moves and goes")
    func watched() async throws {
        let database = try await fresh()
        let store = EngineHarness(database.conninfo, lanes: 1)
        try await store.running {
            #expect(try await store.outcomes(of: [store.watch([ada, bob], connection: 1)]) == [.subscribed])
            func waitForNews(_ fits: @escaping (Answer) -> Bool) async throws {
                try await waitUntil("news") { store.mailbox.publications.last.map { fits($0.answer) } ?? false }
            }
            try await buy(database)
            try await waitForNews { $0.renews == at(first) }
            try await tell(database, "08:10:00", "renewed", ["expires": second])
            try await waitForNews { $0.renews == at(second) }
            try await tell(database, "08:15:00", "product_changed", ["next_product": "large"])
            try await waitForNews { $0.nextPlan == "pro" }
            try await tell(database, "08:20:00", "cancelled")
            try await waitForNews { $0.snapshot.state == .cancelled && $0.renews == nil }
            try await tell(database, "08:30:00", "uncancelled")
            try await waitForNews { $0.renews == at(second) }
            _ = try await store.execute(ada, .consume(1))
            try await waitForNews { $0.snapshot.used == 1 && $0.renews == at(second) }
            // The same plan, state and end, declared: only the renewal goes.
            _ = try await store.execute(ada, .setPlan(PlanChange(user: ada, plan: "paid", expiresAt: at(second))))
            try await waitForNews { $0.renews == nil }
        }
    }
}
