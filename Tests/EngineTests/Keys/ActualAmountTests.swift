import TestSupport
import Testing
import Usage

@testable import Engine

/// Holds of which only some messages are committed.
@Suite("A commit of fewer messages than are held")
struct ActualAmountTests {
    @Test("counts them on the fast path, gives back the rest, and is repeated with the same number only")
    func fastPath() async throws {
        try await TwoEngines.running(at: at("2026-11-30T23:59:00Z"), lanes: 1) { database, engine, other in
            _ = try await engine.execute(ada, .consume(1))
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
}
