import TestSupport
import Testing
import Usage

@testable import Engine

/// A change is committed, and then a second statement reads what to answer.
@Suite("A change after which the database refuses to be read")
struct RefusedReadTests {
    @Test("is made, and is answered -UNKNOWN, not that nothing was changed") func change() async throws {
        try await EngineHarness.serving(.fresh(), lanes: 1) { database, harness in
            #expect(try await harness.execute(ada, .consume(7)).isAllowed)
            let name = "headroom.read_batch(smallint, uuid[], text[], text)"
            try await database.psql.execute("revoke execute on function \(name) from headroom_service")
            let grant = EngineOperation.grant(Grant(5, key: messageKey("ticket")))
            #expect(try await harness.execute(ada, grant) == .failure(.unknown))
            #expect(try await harness.execute(ada, .resetUsage(nil)) == .failure(.unknown))
            #expect(try await harness.execute(ada, .usage).failure?.code == .internal)
            #expect(harness.engine.metrics.outcomesUnknown == 2)
            try await database.psql.execute("grant execute on function \(name) to headroom_service")
            let answer = try #require(try await harness.execute(ada, grant).answer)
            #expect(answer.isRepeated && answer.snapshot.used == 0 && answer.snapshot.limit == 105)
        }
    }
}
