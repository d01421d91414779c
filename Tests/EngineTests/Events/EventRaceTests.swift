import TestSupport
import Testing
import Usage

@testable import Engine

@Suite("Concurrent store events")
struct EventRaceTests {
    @Test("the same event has one effect, and all answers but one are duplicate")
    func sameEvent() async throws {
        let database = try await TestDatabase.fresh(at: at("2026-11-11T12:00:00Z"))
        let sessions = try await database.sessions(4)
        for number in 0..<25 {
            let event = StoreEvent(
                "purchased",
                "2026-11-01",
                ["plan": "paid", "expires": "2026-12-01"],
                // Existing and new users.
                of: user(UInt64(number / 5)),
                transaction: "transaction \(number / 5)",
                id: "event \(number)"
            )
            let outcomes = try await withThrowingTaskGroup(of: String?.self) { group in
                for session in sessions { group.addTask { try await session.apply(event)["outcome"] } }
                return try await group.reduce(into: [String?]()) { $0.append($1) }
            }
            #expect(outcomes.count { $0 == "applied" } == 1)
            #expect(outcomes.count { $0 == "duplicate" } == 3)
        }
        #expect(try await database.psql.number("select count(*) from headroom.billing_events") == 25)
        #expect(try await database.psql.number("select count(*) from headroom.subscriptions") == 5)
        let changes = "select count(*) from headroom.audit_log where not after ? 'outcome'"
        #expect(try await database.psql.number(changes) == 5)
        #expect(try await database.psql.number("select count(*) from headroom.audit_log") == 25)
    }

    @Test("the second of two events of one user waits for the first, and sees its effect")
    func twoEvents() async throws {
        let database = try await TestDatabase.fresh(at: at("2026-11-11T12:00:00Z"))
        try await database.psql.apply(StoreEvent("purchased", "2026-11-01", ["plan": "paid", "expires": "2026-12-01"]))
        let answer = try await database.overlapping(
            try StoreEvent("extended", "2026-11-02", ["expires": "2026-12-20"]).event,
            try StoreEvent("cancelled", "2026-11-03").event
        )
        #expect(answer.first["state"] == "active")
        #expect(answer.second["state"] == "cancelled" && answer.second["expires"] == "2026-12-20T00:00:00Z")
    }

    @Test("store events of users who send messages neither deadlock nor lose a message, and all are applied")
    func whileCounting() async throws {
        let seed = SeededGenerator.newSeed()
        print("events while counting, seed \(seed)")
        let database = try await TestDatabase.fresh(at: at("2026-11-11T12:00:00Z"))
        let users = (0..<6).map { user(UInt64($0)) }
        // Some have a usage row of an older client, and no subscriber.
        for user in users.prefix(3) {
            _ = try await database.psql.text("select increment_and_check_usage('\(user)', 'trial', 100)")
        }
        let eventSessions = try await database.sessions(3)
        let engine = EngineHarness(database.conninfo)
        let counted = try await engine.running {
            try await withThrowingTaskGroup(of: Int.self) { group in
                for (index, session) in eventSessions.enumerated() {
                    group.addTask {
                        var random = SeededGenerator(seed: seed &+ UInt64(index))
                        for event in self.events(users, &random) { try await session.apply(event) }
                        return 0
                    }
                }
                for part in 0..<3 {
                    group.addTask {
                        var random = SeededGenerator(seed: seed &+ 100 &+ UInt64(part))
                        var counted = 0
                        for _ in 0..<150 {
                            let requests = (0..<4).map { _ in
                                (user: random.element(of: users), operation: EngineOperation.consume(1))
                            }
                            counted += try await engine.execute(requests).count { $0.isAllowed }
                        }
                        return counted
                    }
                }
                return try await group.reduce(0, +)
            }
        }
        #expect(try await database.psql.number("select sum(message_count) from message_usage") == counted + 3)
        #expect(try await database.deadlocks == 0)
        #expect(engine.log.events.allSatisfy { $0.level < .error })
        for user in users {
            #expect(try await database.usage(user)["plan"] == "pro")
            #expect(try await database.consume(user)["status"] == "ALLOWED")
        }
    }

    /// The same events for each session, in different orders.
    private func events(_ users: [UserID], _ random: inout SeededGenerator) -> [StoreEvent] {
        let history = [
            StoreEvent("purchased", "2026-11-01", ["plan": "paid", "expires": "2026-12-01", "anchor": "1"]),
            StoreEvent("cancelled", "2026-11-02"), StoreEvent("revoked", "2026-11-03"),
            StoreEvent("reinstated", "2026-11-04"), StoreEvent("uncancelled", "2026-11-05"),
            StoreEvent("grace_period", "2026-11-06", ["grace_until": "2026-11-30"]),
            StoreEvent("renewed", "2026-11-07", ["expires": "2026-12-07"]),
            StoreEvent("product_changed", "2026-11-08", ["plan": "pro"]),
        ]
        return users.flatMap { user in history.map { $0.of(user) } }.shuffled(using: &random)
    }
}
