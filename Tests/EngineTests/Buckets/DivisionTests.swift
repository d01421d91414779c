import TestSupport
import Testing
import Usage

@testable import Engine

@Suite("A database with several buckets")
struct DivisionTests {
    private let users = (0..<40).map { user($0) }

    private func withDatabase(
        lanes: Int = 2,
        through proxied: Bool = false,
        _ body: @Sendable (TestDatabase, Proxy, EngineHarness) async throws -> Void
    ) async throws {
        let database = try await TestDatabase.fresh()
        try await database.psql.execute("update headroom.plans set allowance = 1000000 where plan = 'trial'")
        let proxy = try await database.proxy()
        defer { proxy.close() }
        let harness = EngineHarness(proxied ? database.conninfo(through: proxy) : database.conninfo, lanes: lanes)
        try await harness.running { try await body(database, proxy, harness) }
        #expect(harness.log.count(of: "statement refused") == 0)
    }

    /// How many rows are in another bucket than their user's.
    private func misplacedRows(_ database: TestDatabase) async throws -> Int? {
        try await database.psql.number(
            """
            select
                (select count(*) from message_usage where bucket <> headroom.bucket_of(user_id))
                + (select count(*) from headroom.subscribers where bucket <> headroom.bucket_of(user_id))
                + (select count(*) from headroom.usage_parts where bucket <> headroom.bucket_of(user_id))
                + (select count(*) from headroom.message_keys where bucket <> headroom.bucket_of(user_id))
            """
        )
    }

    @Test("counts each batch in one bucket, with a receipt there")
    func counting() async throws {
        try await withDatabase { database, _, harness in
            try await database.beginDivision(into: 8)
            try await database.divideUsers(to: BucketMap.movedMaximum)
            for round in 1...3 {
                let requests: [(UserID, EngineOperation)] =
                    users.map { ($0, .consume(2)) } + users.map { ($0, .check(1)) }
                let outcomes = try await harness.execute(requests)
                #expect(outcomes.map { $0.answer?.snapshot.used } == Array(repeating: 2 * round, count: 80))
            }
            #expect(try await misplacedRows(database) == 0)
            #expect(try await database.psql.number("select count(distinct bucket) from message_usage") == 8)
            // One lane has each bucket. Before the division, both had a receipt in bucket 0.
            let receipts = try await database.psql.rows(
                """
                select bucket || ':' || count(*) from headroom.lane_receipts where number > 0
                group by bucket order by bucket
                """
            )
            #expect(receipts == (1...8).map { "\($0):1" })
        }
    }

    @Test(
        "counts once if the connection is cut",
        arguments: ["count_keyed_batch", "derive_and_count", "lock_and_read_users", "write_receipt", "open_lane"],
        [true, false]
    )
    func lostConnection(statement: String, isReply: Bool) async throws {
        try await withDatabase(lanes: 1, through: true) { database, proxy, harness in
            try await database.beginDivision(into: 4)
            try await database.divideUsers(to: BucketMap.movedMaximum)
            // Receipts in the buckets of the others are opened later.
            let known = users.filter { statement != "open_lane" || $0.hash & 3 == 0 }.prefix(30)
            _ = try await harness.execute(known.map { ($0, .consume(1)) })
            proxy.arm(isReply ? .reply(statement) : .request(statement))
            let outcomes = try await harness.execute(
                users.enumerated().map { ($1, .consume(1, key: $0 % 3 == 0 ? messageKey("key \($0)") : nil)) }
            )
            #expect(outcomes.map { $0.answer?.snapshot.used } == users.map { known.contains($0) ? 2 : 1 })
            #expect(proxy.cuts == 1)
            #expect(try await database.psql.number("select sum(message_count) from message_usage") == 40 + known.count)
            #expect(try await misplacedRows(database) == 0)
        }
    }

    @Test("answers messages in their order, and counts each once, while users are moved")
    func movingUnderLoad() async throws {
        try await withDatabase(lanes: 3) { database, _, harness in
            try await database.psql.execute(
                "insert into headroom.plan_limits (plan, kind, name, allowance) values ('trial', 'member', '*', 1000000)"
            )
            let hasEnded = Flag()
            let counted = try await withThrowingTaskGroup(of: [UserID: Int].self) { group in
                // Also if something fails: the group waits for its clients.
                defer { hasEnded.set() }
                for client in 0..<4 { group.addTask { try await load(harness, client: client, until: hasEnded) } }
                try await database.beginDivision(into: 8)
                for part in stride(from: 256, through: BucketMap.movedMaximum, by: 256) {
                    let batches = harness.engine.snapshot.batches
                    try await database.divideUsers(to: part)
                    try await waitUntil("every client goes on") { harness.engine.snapshot.batches > batches + 20 }
                }
                try await waitUntil("a bucket has one lane") {
                    harness.engine.routes == LaneRoutes(buckets: 8, laneCount: 3)
                }
                let batches = harness.engine.snapshot.batches
                try await waitUntil("every client goes on") { harness.engine.snapshot.batches > batches + 20 }
                hasEnded.set()
                return try await group.reduce(into: [UserID: Int]()) { $0.merge($1) { $1 } }
            }
            #expect(try await misplacedRows(database) == 0)
            #expect(try await database.psql.number("select count(*) from message_usage where bucket = 0") == 0)
            for (user, messages) in counted {
                #expect(try await database.count(of: user, period: "trial") == messages)
            }
        }
    }

    /// Sends messages of users of its own, several requests at a time, and compares each answer with what it has sent.
    /// Each user has a member, who sends some of them.
    ///
    /// - Returns: the messages of each user.
    private func load(_ harness: EngineHarness, client: Int, until hasEnded: Flag) async throws -> [UserID: Int] {
        var random = SeededGenerator(seed: UInt64(client))
        let own = (0..<20).map { user(UInt64(1_000 + client * 100 + $0)) }
        var used: [UserID: Int] = [:]
        var usedByMember: [UserID: Int] = [:]
        let parts = try #require(MessageParts(member: user(7)))
        var round = 0
        while !hasEnded.isSet {
            round += 1
            var requests: [(user: UserID, operation: EngineOperation)] = []
            var expected: [Int] = []
            var expectedOfMember: [Int: Int] = [:]
            for number in 0..<Int.random(in: 1...30, using: &random) {
                let user = own.randomElement(using: &random) ?? own[0]
                let key = messageKey("\(client) \(round) \(number)")
                switch Int.random(in: 0..<15, using: &random) {
                case 12, 13:
                    used[user, default: 0] += 1
                    usedByMember[user, default: 0] += 1
                    requests.append((user, EngineOperation.consume(1).inParts(parts)))
                    expectedOfMember[expected.count] = usedByMember[user]
                case 14:
                    requests.append((user, EngineOperation.check(1).inParts(parts)))
                    expectedOfMember[expected.count] = usedByMember[user, default: 0]
                case 0: requests.append((user, .check(1)))
                case 1: requests.append((user, .usage))
                case 2:
                    used[user, default: 0] += 1
                    requests.append((user, .consume(1, key: key)))
                    expected.append(used[user, default: 0])
                    // Again with the key, which counts nothing more.
                    requests.append((user, .consume(1, key: key)))
                case 3: requests.append((user, .grant(Grant(1, key: key))))
                case 4:
                    requests.append((user, .reserve(2, key: key, ttlSeconds: 3_600)))
                    expected.append(used[user, default: 0])
                    used[user, default: 0] += 2
                    requests.append((user, .commit(key: key)))
                default:
                    used[user, default: 0] += 1
                    requests.append((user, .consume(1)))
                }
                expected.append(used[user, default: 0])
            }
            let outcomes = try await harness.execute(requests)
            #expect(outcomes.map { $0.answer?.snapshot.used } == expected, "client \(client), round \(round)")
            #expect(outcomes.allSatisfy { $0.answer != nil }, "client \(client), round \(round)")
            for (index, used) in expectedOfMember {
                let member = outcomes[index].answer?.snapshot.parts.first
                #expect(member?.counter.used == used, "client \(client), round \(round)")
            }
        }
        return used
    }

    @Test(
        "answers a batch whose reply was lost, though its users have moved since",
        arguments: ["count_keyed_batch", "write_receipt"]
    )
    func lostReplyAndMoved(statement: String) async throws {
        try await withDatabase(lanes: 1, through: true) { database, proxy, harness in
            try await database.beginDivision(into: 8)
            // The keys lead new users to the slow path, and known ones to the fast path.
            if statement == "count_keyed_batch" { _ = try await harness.execute(users.map { ($0, .consume(1)) }) }
            let before = statement == "count_keyed_batch" ? 1 : 0
            proxy.arm(.reply(statement))
            proxy.refusesConnectionsAfterCut = true
            let slots = harness.submit(users.map { ($0, .consume(3, key: messageKey("once"))) })
            try await waitUntil("the batch is committed, and its reply lost") { proxy.cuts == 1 }
            try await database.divideUsers(to: 2_048)
            proxy.refusesConnections = false
            let outcomes = try await harness.outcomes(of: slots)
            #expect(outcomes.map { $0.answer?.snapshot.used } == Array(repeating: before + 3, count: 40))
            #expect(outcomes.allSatisfy { $0.isAllowed })
            let again = try await harness.execute(users.map { ($0, .consume(3, key: messageKey("once"))) })
            #expect(again.allSatisfy { $0.answer?.isRepeated == true })
            #expect(try await database.psql.number("select sum(message_count) from message_usage") == 40 * (before + 3))
            #expect(try await misplacedRows(database) == 0)
        }
    }
}
