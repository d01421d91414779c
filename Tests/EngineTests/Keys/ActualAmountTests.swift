import TestSupport
import Testing
import Usage

@testable import Engine

/// Holds of which only some messages are committed.
@Suite("A commit of fewer messages than are held")
struct ActualAmountTests {
    private let eve = at("2026-11-30T23:59:00Z")
    private let after = at("2026-12-01T00:00:30Z")
    private let hold = messageKey("hold")

    /// Runs with Ada on the paid plan, cached, with one message counted.
    private func running(_ body: TwoEngines.Body) async throws {
        try await TwoEngines.running(at: eve, lanes: 1) { database, engine, other in
            _ = try await engine.execute(ada, .consume(1))
            try await body(database, engine, other)
        }
    }

    @Test("counts them on the fast path, gives back the rest, and is repeated with the same number only")
    func fastPath() async throws {
        try await running { database, engine, other in
            let slow = engine.slowPathStatements
            for (round, messages) in [0, 1, 4, 5, nil].enumerated() {
                let key = messageKey("hold \(round)")
                let before = try #require(try await engine.execute(ada, .usage).answer).snapshot.used
                _ = try await engine.execute(ada, .reserve(5, key: key, ttlSeconds: 60))
                let committed = try #require(try await engine.execute(ada, .commit(messages, key: key)).answer)
                #expect(committed.status == .allowed && !committed.isRepeated && committed.crossed == nil)
                #expect(committed.snapshot.used == before + (messages ?? 5) && committed.snapshot.held == 0)
                #expect(engine.slowPathStatements == slow, "committing \(messages ?? 5) of 5")
                let again = try #require(try await other.execute(ada, .commit(messages ?? 5, key: key)).answer)
                #expect(again.isRepeated && again.firstNumbers == committed.firstNumbers)
                let conflict = try await other.execute(ada, .commit((messages ?? 5) + 1, key: key))
                #expect(conflict == .failure(.keyConflict))
                if messages ?? 5 != 5 {
                    #expect(try await other.execute(ada, .commit(key: key)) == .failure(.keyConflict), "all is 5")
                }
                #expect(try await other.execute(ada, .release(key)).answer?.released == messages ?? 5)
                #expect(try await database.count(of: ada, period: "2026-11") == before)
                // The rows that another instance has changed are read again.
                _ = try await engine.execute(ada, .consume(1))
                #expect(engine.slowPathStatements == slow)
            }
        }
    }

    @Test("is refused beyond what is held, and the hold lasts on")
    func tooMany() async throws {
        try await running { database, engine, _ in
            _ = try await engine.execute(ada, .reserve(5, key: hold, ttlSeconds: 60))
            #expect(try await engine.execute(ada, .commit(6, key: hold)) == .failure(.commitTooLarge))
            #expect(try await engine.execute(ada, .usage).answer?.snapshot.held == 5)
            #expect(try await engine.execute(ada, .commit(5, key: hold)).answer?.snapshot.used == 6)
            #expect(try await database.count(of: ada, period: "2026-11") == 6)
        }
    }

    @Test("makes room for messages that come after it in the same batch, and not for those before it")
    func oneBatch() async throws {
        try await running { database, engine, _ in
            _ = try await engine.execute(ada, .reserve(799, key: hold, ttlSeconds: 60))
            let outcomes = try await engine.execute([
                (ada, .consume(1)), (ada, .check(1)), (ada, .commit(797, key: hold)), (ada, .check(3)),
                (ada, .consume(2)), (ada, .consume(1)),
            ])
            let answers = outcomes.compactMap(\.answer)
            #expect(
                answers.map(\.status) == [
                    .blocked(.limitReached), .blocked(.limitReached), .allowed, .blocked(.exceedsRemaining), .allowed,
                    .blocked(.limitReached),
                ]
            )
            #expect(answers.map(\.snapshot.used) == [1, 1, 798, 798, 800, 800])
            #expect(answers.map(\.snapshot.held) == [799, 799, 0, 0, 0, 0])
            #expect(try await database.count(of: ada, period: "2026-11") == 800)
        }
    }

    @Test("lowers the tier that the held messages had reached")
    func tier() async throws {
        try await running { _, engine, _ in
            let held = try #require(try await engine.execute(ada, .reserve(799, key: hold, ttlSeconds: 60)).answer)
            #expect(held.snapshot.tier == .blocked && held.crossed == .blocked)
            let committed = try #require(try await engine.execute(ada, .commit(1, key: hold)).answer)
            #expect(committed.snapshot.tier == .silent && committed.crossed == nil)
        }
    }

    @Test("counts in the period of the hold, and a release in a later one gives back what was counted")
    func pastPeriod() async throws {
        try await running { database, engine, other in
            let settled = messageKey("settled")
            for key in [hold, settled] { _ = try await engine.execute(ada, .reserve(5, key: key, ttlSeconds: 600)) }
            _ = try await engine.execute(ada, .commit(2, key: settled))
            try await database.moveClock(to: after)
            #expect(try await other.execute(ada, .commit(6, key: hold)) == .failure(.commitTooLarge))
            let committed = try #require(try await other.execute(ada, .commit(3, key: hold)).answer)
            #expect(committed.snapshot.period == billingPeriod("2026-11"))
            #expect(committed.snapshot.used == 6 && committed.snapshot.held == 0)
            #expect(try await engine.execute(ada, .release(settled)).answer?.released == 2)
            #expect(try await engine.execute(ada, .release(hold)).answer?.released == 3)
            #expect(try await database.count(of: ada, period: "2026-11") == 1)
        }
    }
}
