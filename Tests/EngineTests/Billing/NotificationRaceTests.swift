import TestSupport
import Testing
import Usage

@testable import Engine

@Suite("Concurrent billing events")
struct NotificationRaceTests: BillingSuite {
    @Test("of one customer wait for the one before, and see its effect")
    func waiting() async throws {
        let database = try await fresh()
        let answer = try await database.overlapping(
            try Event("t", "2026-11-06", Event.transferred(from: ["\(user(1))"], to: ["\(user(2))"])).billingEvent,
            try Event("e", "2026-11-05", by: ["\(user(1))"], Event.purchased("T")).billingEvent
        )
        #expect(answer.first["outcome"] == "waiting" && answer.second["outcome"] == "applied")
        #expect(answer.second["user"] == "\(user(2))")
    }

    @Test("neither deadlock nor lose a message beside batches, resets, grants and forgetting")
    func beside() async throws {
        let seed = SeededGenerator.newSeed()
        print("notifications while counting, seed \(seed)")
        let database = try await fresh()
        let users = (0..<6).map { user(UInt64($0)) }
        let eventSessions = try await database.sessions(3)
        let operators = try await database.sessions(2)
        let engine = EngineHarness(database.conninfo)
        let isAllowed = try await engine.running {
            try await withThrowingTaskGroup(of: Bool.self) { group in
                for (index, session) in eventSessions.enumerated() {
                    group.addTask {
                        var random = SeededGenerator(seed: seed &+ UInt64(index))
                        for number in 0..<60 {
                            try await session.ingest(self.event("\(index) \(number)", users, &random))
                        }
                        return true
                    }
                }
                for (index, person) in operators.enumerated() {
                    group.addTask {
                        var random = SeededGenerator(seed: seed &+ 50 &+ UInt64(index))
                        for _ in 0..<25 {
                            let someone = random.element(of: users)
                            try await person.execute(
                                random.element(of: [
                                    "select reset_billing_period('2026-11')", "select reset_billing_period('trial')",
                                    "select forget_user('\(someone)')", "select grant_messages('\(someone)', 1)",
                                    "select set_plan('\(someone)', 'paid')",
                                ])
                            )
                        }
                        return true
                    }
                }
                for part in 0..<3 {
                    group.addTask {
                        var random = SeededGenerator(seed: seed &+ 100 &+ UInt64(part))
                        for _ in 0..<100 {
                            let requests = (0..<4).map { _ in
                                (user: random.element(of: users), operation: EngineOperation.consume(1))
                            }
                            // Each is answered, allowed or blocked.
                            guard try await engine.execute(requests).allSatisfy({ $0.answer != nil }) else {
                                return false
                            }
                        }
                        return true
                    }
                }
                return try await group.allSatisfy { $0 }
            }
        }
        #expect(isAllowed)
        #expect(try await database.deadlocks == 0)
        #expect(engine.log.events.allSatisfy { $0.level < .error })
    }

    private func event(_ id: String, _ users: [UserID], _ random: inout SeededGenerator) -> Event {
        let (one, other) = ("\(random.element(of: users))", "\(random.element(of: users))")
        let at = "2026-11-\(Int.random(in: 10...19, using: &random))"
        let effect: [String: Any & Sendable] =
            switch Int.random(in: 0..<6, using: &random) {
            case 0: Event.transferred(from: [one], to: [other])
            case 1: ["kind": "merged", "identities": [one, other, digest(Int.random(in: 0..<3, using: &random))]]
            case 2: ["kind": "granted", "transaction": "G \(id)", "product": "pack"]
            default:
                Event.purchased("T\(Int.random(in: 0..<8, using: &random))", random.element(of: ["monthly", "large"]))
            }
        return Event(id, at, by: [one, digest(Int.random(in: 0..<3, using: &random))], effect)
    }
}
