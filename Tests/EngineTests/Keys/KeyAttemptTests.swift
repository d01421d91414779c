import TestSupport
import Testing
import Usage

@testable import Engine

/// A key is good for one attempt: an answer with `replayed=1` is given only while its messages are counted or held.
@Suite("A key whose messages were given back, or whose hold has expired")
struct KeyAttemptTests {
    private let noon = at("2026-11-10T12:00:00Z")
    private let key = messageKey("m1")

    private func running(_ body: TwoEngines.Body) async throws { try await TwoEngines.running(at: noon, body) }

    private func expectNothing(_ engine: EngineHarness, used: Int = 0) async throws {
        let snapshot = try await engine.execute(ada, .usage).answer?.snapshot
        #expect(snapshot?.used == used && snapshot?.held == 0)
    }

    @Test("is refused for another attempt, by every engine, in its period and later")
    func released() async throws {
        try await running { database, engine, other in
            #expect(EngineError.keyReleased.message == "key was released; a new attempt needs a new key")
            _ = try await engine.execute(ada, .consume(3, key: key))
            #expect(try await other.execute(ada, .release(key)).answer?.released == 3)
            let attempts: [EngineOperation] = [
                .consume(3, key: key), .consume(1, key: key), .reserve(3, key: key, ttlSeconds: 60), .commit(key: key),
            ]
            for instant in [noon, at("2026-12-02T12:00:00Z")] {
                try await database.moveClock(to: instant)
                for (engine, attempt) in [engine, other].flatMap({ engine in attempts.map { (engine, $0) } }) {
                    // A COMMIT of a key that was counted by CONSUME is a conflict of its own.
                    let error = attempt == .commit(key: key) ? EngineError.keyConflict : .keyReleased
                    #expect(try await engine.execute(ada, attempt) == .failure(error), "\(attempt)")
                }
                try await expectNothing(engine)
            }
        }
    }

    @Test("is expired for a further RESERVE, which holds nothing, until it is released")
    func expired() async throws {
        try await running { database, engine, other in
            let reserve = EngineOperation.reserve(2, key: key, ttlSeconds: 60)
            _ = try await engine.execute(ada, reserve)
            #expect(try await other.execute(ada, reserve).answer?.isRepeated == true)
            try await database.moveClock(to: noon.advanced(bySeconds: 60))
            for engine in [engine, other] {
                #expect(try await engine.execute(ada, reserve) == .failure(.holdExpired))
                #expect(try await engine.execute(ada, .commit(key: key)) == .failure(.holdExpired))
                try await expectNothing(engine)
            }
            #expect(try await engine.execute(ada, .release(key)).answer?.released == 0)
            #expect(try await other.execute(ada, reserve) == .failure(.keyReleased))
            try await expectNothing(engine)
        }
    }

    @Test("differs from one that is committed, reset or of a past month, which is replayed")
    func stillCounted() async throws {
        try await running { database, engine, other in
            let reserve = EngineOperation.reserve(2, key: key, ttlSeconds: 60)
            _ = try await engine.execute(ada, reserve)
            _ = try await engine.execute(ada, .commit(key: key))
            _ = try await engine.execute(ada, .consume(3, key: messageKey("m2")))
            _ = try await engine.execute(ada, .resetUsage(nil))
            for instant in [noon.advanced(bySeconds: 60), at("2026-12-02T12:00:00Z")] {
                try await database.moveClock(to: instant)
                for operation in [reserve, .commit(key: key), .consume(3, key: messageKey("m2"))] {
                    #expect(try await other.execute(ada, operation).answer?.isRepeated == true, "\(operation)")
                }
                try await expectNothing(engine)
            }
        }
    }
}
