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
        var parts: String?
        /// Batches of requests with parts on the slow path, which counts the first messages of each part.
        var slowBatches = 0
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
            try await database.psql.execute(
                """
                insert into headroom.plan_limits (plan, kind, name, allowance, window_messages, window_seconds, weight)
                values ('paid', 'model', 'gpt-5*', 60, 50, 3600, 2), ('paid', 'model', 'o3', 40, null, null, 1),
                    ('paid', 'member', '*', 70, null, null, 1)
                """
            )
            for user in users { _ = try await harness.execute(user, .setPlan(PlanChange(user: user, plan: "paid"))) }
            for user in users { _ = try await harness.execute(user, .consume(450)) }
            var outcomesOfAll: [Outcome] = []
            var slowBatches = 0
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
                let inParts = users.enumerated().flatMap { index, user in
                    let number = generator.chance(15) ? max(round - 2, 0) : round
                    let key = messageKey("in parts \(number)")
                    // A repeated key has the number of its first use, and mostly the parts.
                    var ofKey = SeededGenerator(seed: seed &+ UInt64(number * users.count + index))
                    let messages = ofKey.element(of: [1, 1, 1, 2])
                    let parts = generator.chance(5) ? Self.parts(&generator) : Self.parts(&ofKey)
                    let operation = EngineOperation.consume(messages, key: key).inParts(parts)
                    let others = (0..<otherKeys).map { EngineOperation.release(messageKey("never used \($0)")) }
                    return ([operation] + others).map { (user, $0) }
                }
                outcomesOfAll += zip(inParts, try await harness.execute(inParts)).compactMap { request, outcome in
                    if case .batched(.release, _) = request.1 { nil } else { outcome }
                }
                if try await path(database) == "true" { slowBatches += 1 }
            }
            // The paths draw other generations. A counter is left out if its keys have another than itself.
            let keys = """
                select string_agg(concat_ws(' ', user_id, key, messages, used, held, "limit", verb, status,
                    billing_period, jsonb_strip_nulls(parts) #- '{model,generation}' #- '{member,generation}'),
                    ',' order by user_id, key) from headroom.message_keys
                """
            let parts = """
                select string_agg(concat_ws(' ', user_id, kind, name, used, held, "limit", window_opened_at,
                    window_used, window_limit), ',' order by user_id, kind, name)
                from headroom.usage_parts as part
                where not exists (
                    select from headroom.message_keys as keys where keys.user_id = part.user_id
                        and keys.parts #>> array[part.kind, 'counter'] = part.name
                        and (keys.parts #>> array[part.kind, 'generation'])::bigint is distinct from part.generation
                )
                """
            let counts = """
                select string_agg(concat_ws(' ', user_id, message_count), ',' order by user_id) from message_usage
                """
            return History(
                outcomes: outcomesOfAll,
                keys: try await database.psql.text(keys),
                counts: try await database.psql.text(counts),
                parts: try await database.psql.text(parts),
                slowBatches: slowBatches
            )
        }
    }

    private static func parts(_ generator: inout SeededGenerator) -> MessageParts? {
        MessageParts(
            model: generator.element(of: ["gpt-5", "gpt-5-mini", "o3", "unlisted"]),
            member: generator.element(of: [nil, user(8), user(9)])
        )
    }

    /// The receipt shows the path of the lane's newest batch: whether it is the slow one.
    private func path(_ database: TestDatabase) async throws -> String? {
        try await database.psql.text(
            "select answers is not null from headroom.lane_receipts order by updated_at desc limit 1"
        )
    }

    /// In the first batch, every key is new. A release of an unknown key takes the slow path, also alone.
    private func expectPath(isSlow: Bool, _ database: TestDatabase, isFirst: Bool) async throws {
        if isFirst { #expect(try await path(database) == (isSlow ? "true" : "false")) }
    }

    @Test("has the same answers and rows", arguments: SeededGenerator.seeds(always: [1, 2]))
    func alike(seed: UInt64) async throws {
        print("keys on the fast and the slow path, seed \(seed)")
        let fast = try await run(seed: seed, otherKeys: 0)
        var slow = try await run(seed: seed, otherKeys: 2)
        for (index, pair) in zip(fast.outcomes, slow.outcomes).enumerated() where pair.0 != pair.1 {
            Issue.record("seed \(seed), answer \(index): fast \(pair.0), slow \(pair.1)")
            break
        }
        #expect(fast.slowBatches < 60 && slow.slowBatches == 60, "seed \(seed)")
        slow.slowBatches = fast.slowBatches
        #expect(fast == slow, "seed \(seed)")
        var mixed = try await run(seed: seed, otherKeys: 1)
        mixed.slowBatches = fast.slowBatches
        #expect(mixed == fast, "seed \(seed), two keys")
        let answers = fast.outcomes.compactMap(\.answer)
        #expect(answers.contains { $0.isRepeated } && answers.contains { $0.crossed != nil })
        #expect(answers.contains { $0.isRepeated && !$0.snapshot.parts.isEmpty })
        #expect(fast.outcomes.contains(.failure(.keyConflict)))
    }
}
