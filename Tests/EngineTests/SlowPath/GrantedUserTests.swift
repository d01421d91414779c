import TestSupport
import Testing
import Usage

@testable import Engine

/// A grant creates a usage row without a subscriber, who is created when the first message is locked for.
@Suite("A granted user's first message, in a batch with users that are known")
struct GrantedUserTests {
    @Test("locks and reads each user as if it were alone")
    func mixed() async throws {
        let database = try await TestDatabase.fresh()
        let (known, granted, last) = (user(1), user(2), user(3))
        try await database.psql.execute(
            """
            select grant_messages('\(granted)', 5);
            select set_plan('\(known)', 'paid');
            select set_plan('\(last)', 'paid');
            select increment_and_check_usage('\(known)', 7);
            select increment_and_check_usage('\(last)', 3);
            """
        )
        // So that all three take the slow path.
        try await database.psql.execute("update headroom.plans set allowance = 900 where plan = 'paid'")
        // Beside users that are known, it is not created: it is executed apart.
        for (users, locked) in [([known, granted, last], [known, last]), ([granted, user(4)], [granted, user(4)])] {
            let array = users.map { "'\($0)'" }.joined(separator: ", ")
            let statement = """
                select headroom.lock_for_messages(
                    0::smallint, array[\(array)]::uuid[], array_fill(true, array[\(users.count)])
                )
                """
            let expected = "{" + locked.map(\.description).joined(separator: ",") + "}"
            #expect(try await database.psql.text(statement) == expected)
        }
        try await database.psql.execute(
            "delete from headroom.subscribers where user_id in ('\(granted)', '\(user(4))')"
        )
        let engine = EngineHarness(database.conninfo, lanes: 1)
        try await engine.running {
            let outcomes = try await engine.execute([
                (last, .consume(898)), (granted, .consume(1)), (known, .reserve(2, key: "k", ttlSeconds: 60)),
                (known, .commit(key: "k")),
            ])
            #expect(outcomes.map(\.isAllowed) == [false, true, false, true])
            #expect(outcomes.map { $0.answer?.snapshot.used } == [3, 1, 7, 9])
            #expect(engine.log.count(of: "statement rolled back, sent again") == 0)
        }
    }
}
