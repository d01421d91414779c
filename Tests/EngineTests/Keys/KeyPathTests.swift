import TestSupport
import Testing
import Usage

@testable import Engine

/// The fast path counts keyed messages, in two batches if a user has two keys, and the slow path counts them if a user
/// has more.
@Suite("A keyed message, on the fast and on the slow path")
struct KeyPathTests {
    private let noon = at("2026-11-10T12:00:00Z")

    private struct History: Equatable {
        var outcomes: [Outcome]
        var keys: String?
        var counts: String?
    }

    /// Executes a random history.
    ///
    /// - Parameter otherKeys: how many unknown keys each user releases in each batch. One is decided in a batch of its
    ///   own, and with two, all requests of the user take the slow path.
    private func run(seed: UInt64, otherKeys: Int) async throws -> History {
        let database = try await TestDatabase.fresh(at: noon)
        let harness = EngineHarness(database.conninfo, lanes: 1)
        return try await harness.running {
            var generator = SeededGenerator(seed: seed)
            let users = (0..<4).map { user(UInt64($0)) }
            for user in users { _ = try await harness.execute(user, .setPlan(PlanChange(user: user, plan: "paid"))) }
            for user in users { _ = try await harness.execute(user, .consume(600)) }
            var outcomesOfAll: [Outcome] = []
            for round in 0..<60 {
                var requests: [(user: UserID, operation: EngineOperation)] = []
                for user in users {
                    let age = Int.random(in: 0...min(3, round), using: &generator)
                    let messages = generator.element(of: [1, 1, 1, 2, 9])
                    let keyed = EngineOperation.consume(messages, key: messageKey("key \(round - age)"))
                    let others = [EngineOperation.consume(messages), .check(1), .usage].shuffled(using: &generator)
                    let own = ([keyed] + others.prefix(2)).shuffled(using: &generator)
                    requests += own.map { (user, $0) }
                    for other in 0..<otherKeys { requests.append((user, .release(messageKey("never used \(other)")))) }
                }
                let outcomes = try await harness.execute(requests)
                outcomesOfAll += zip(requests, outcomes).compactMap { request, outcome in
                    if case .batched(.release, _) = request.operation { nil } else { outcome }
                }
                try await expectPath(isSlow: otherKeys > 0, database, isFirst: round == 0)
            }
            let keys = """
                select string_agg(concat_ws(' ', user_id, key, messages, used, held, "limit", verb, status,
                    billing_period), ',' order by user_id, key) from headroom.message_keys
                """
            let counts = """
                select string_agg(concat_ws(' ', user_id, message_count), ',' order by user_id) from message_usage
                """
            return History(
                outcomes: outcomesOfAll,
                keys: try await database.psql.text(keys),
                counts: try await database.psql.text(counts)
            )
        }
    }

    /// The receipt shows the path of the lane's newest batch; in the first, every key is new. A release of an unknown
    /// key takes the slow path, also alone.
    private func expectPath(isSlow: Bool, _ database: TestDatabase, isFirst: Bool) async throws {
        guard isFirst else { return }
        let path = try await database.psql.text(
            "select answers is not null from headroom.lane_receipts order by updated_at desc limit 1"
        )
        #expect(path == (isSlow ? "true" : "false"))
    }

    @Test("has the same answers and rows", arguments: SeededGenerator.seeds(always: [1, 2]))
    func alike(seed: UInt64) async throws {
        print("keys on the fast and the slow path, seed \(seed)")
        let fast = try await run(seed: seed, otherKeys: 0)
        let slow = try await run(seed: seed, otherKeys: 2)
        for (index, pair) in zip(fast.outcomes, slow.outcomes).enumerated() where pair.0 != pair.1 {
            Issue.record("seed \(seed), answer \(index): fast \(pair.0), slow \(pair.1)")
            break
        }
        #expect(fast == slow, "seed \(seed)")
        #expect(try await run(seed: seed, otherKeys: 1) == fast, "seed \(seed), two keys")
        let answers = fast.outcomes.compactMap(\.answer)
        #expect(answers.contains { $0.isRepeated } && answers.contains { $0.crossed != nil })
        #expect(fast.outcomes.contains(.failure(.keyConflict)))
    }
}
