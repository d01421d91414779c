import TestSupport
import Testing
import Usage

@testable import Engine

@Suite("The same key, used through two engines at once")
struct KeyRaceTests {
    private let noon = at("2026-11-10T12:00:00Z")

    private func running(
        _ body: @Sendable (_ database: TestDatabase, _ engines: [EngineHarness]) async throws -> Void
    ) async throws {
        let database = try await TestDatabase.fresh(at: noon)
        let engines = [EngineHarness(database.conninfo, lanes: 1), EngineHarness(database.conninfo, lanes: 1)]
        try await engines[0].running { try await engines[1].running { try await body(database, engines) } }
    }

    /// Sends every engine the same request without waiting for any, and expects one first answer and only repetitions
    /// of it.
    private func race(_ engines: [EngineHarness], _ user: UserID, _ operation: EngineOperation) async throws -> Answer {
        let slots = engines.map { ($0, $0.submit([(user, operation)])) }
        var answers: [Answer] = []
        for (engine, slots) in slots { answers.append(try #require(try await engine.outcomes(of: slots)[0].answer)) }
        #expect(answers.count { !$0.isRepeated } == 1, "counted once: \(operation)")
        #expect(answers.allSatisfy { $0.firstNumbers == answers[0].firstNumbers }, "answered alike: \(operation)")
        return answers[0]
    }

    @Test("counts it once and answers both alike", arguments: SeededGenerator.seeds(always: [1]))
    func random(seed: UInt64) async throws {
        print("same key from two engines, seed \(seed)")
        try await running { database, engines in
            var generator = SeededGenerator(seed: seed)
            var counted: [UserID: Int] = [:]
            for round in 0..<200 {
                // Users without a row as well as users with one.
                let user = user(UInt64(Int.random(in: 0..<40, using: &generator)))
                let key = messageKey("round \(round)")
                let messages = Int.random(in: 1...2, using: &generator)
                if generator.chance(60) {
                    _ = try await race(engines, user, .consume(messages, key: key))
                } else {
                    _ = try await race(engines, user, .reserve(messages, key: key, ttlSeconds: 60))
                    _ = try await race(engines, user, .commit(key: key))
                }
                counted[user, default: 0] += messages
            }
            for (user, messages) in counted {
                #expect(try await database.count(of: user, period: "trial") == messages, "seed \(seed)")
            }
        }
    }

    @Test("gives a key back once when both release it")
    func release() async throws {
        try await running { database, engines in
            for round in 0..<20 {
                let key = messageKey("round \(round)")
                _ = try await engines[0].execute(user(1), .consume(3, key: key))
                let slots = engines.map { ($0, $0.submit([(user(1), .release(key))])) }
                var released: [Int?] = []
                for (engine, slots) in slots {
                    released.append(try await engine.outcomes(of: slots)[0].answer?.released)
                }
                #expect(Set(released) == [0, 3])
                #expect(try await database.count(of: user(1), period: "trial") == 0)
            }
        }
    }

    @Test("commits or releases a hold, never both")
    func commitOrRelease() async throws {
        try await running { database, engines in
            for round in 0..<30 {
                let key = messageKey("round \(round)")
                _ = try await engines[0].execute(user(1), .reserve(2, key: key, ttlSeconds: 60))
                let committing = engines[round % 2].submit([(user(1), .commit(key: key))])
                let releasing = engines[1 - round % 2].submit([(user(1), .release(key))])
                let committed = try await engines[round % 2].outcomes(of: committing)[0]
                let released = try await engines[1 - round % 2].outcomes(of: releasing)[0]
                #expect(released.answer?.released == 2, "what was held, or what was counted")
                #expect(committed.isAllowed || committed == .failure(.keyReleased))
                let row = "from message_usage where user_id = '\(user(1))'"
                #expect(try await database.psql.text("select message_count + held \(row)") == "0")
            }
        }
    }

    @Test("counts it once also when both take the key for new, and the second insert fails")
    func uniqueViolation() async throws {
        try await running { database, engines in
            let user = user(7)
            for engine in engines {
                // Makes both lanes cache the user, so that they take the fast path.
                _ = try await engine.execute(user, .consume(1))
            }
            for round in 0..<10 {
                try await database.psql.execute(
                    "begin; select from message_usage where user_id = '\(user)' for update"
                )
                let key = messageKey("round \(round)")
                let slots = engines.map { ($0, $0.submit([(user, .consume(2, key: key))])) }
                try await database.waitUntilBlocked(2)
                try await database.psql.execute("commit")
                var answers: [Answer] = []
                for (engine, slots) in slots { answers += try await engine.outcomes(of: slots).compactMap(\.answer) }
                #expect(answers.count { !$0.isRepeated } == 1)
                #expect(answers.map(\.snapshot.used) == [4 + 2 * round, 4 + 2 * round])
                #expect(answers.count == 2 && answers[0].firstNumbers == answers[1].firstNumbers)
            }
            #expect(try await database.count(of: user, period: "trial") == 22)
            let repeated = engines.reduce(0) { $0 + $1.log.count(of: "statement rolled back, sent again") }
            #expect(repeated == 0, "the function itself counts again without the key that exists")
        }
    }
}
