import TestSupport
import Testing
import Usage

@testable import Engine

@Suite("Metrics of lanes")
struct LaneMetricsTests {
    private let noon = at("2026-11-30T12:00:00Z")

    @Test("count each message once on every path, and each denied request")
    func activity() async throws {
        let database = try await TestDatabase.fresh(at: noon)
        let engine = EngineHarness(database.conninfo)
        try await engine.running {
            for number in 1...3 as ClosedRange<UInt64> {
                _ = try await engine.execute(user(number), .setPlan(PlanChange(user: user(number), plan: "paid")))
            }
            // New, cached, with a key, and that key again.
            _ = try await engine.execute(user(1), .consume(1))
            _ = try await engine.execute((0..<5).map { _ in (user(1), .consume(2)) })
            _ = try await engine.execute(user(1), .consume(3, key: messageKey("a")))
            _ = try await engine.execute(user(1), .consume(3, key: messageKey("a")))
            #expect(engine.engine.activity == Activity(messages: 14, blocked: 0))
            // Held messages are not counted, committed ones are, once.
            _ = try await engine.execute(user(2), .reserve(4, key: messageKey("b"), ttlSeconds: 60))
            #expect(engine.engine.activity.messages == 14)
            _ = try await engine.execute(user(2), .commit(key: messageKey("b")))
            _ = try await engine.execute(user(2), .commit(key: messageKey("b")))
            #expect(engine.engine.activity.messages == 18)
            // Denied on the slow path, then on the read path; a denied CHECK does not count.
            _ = try await engine.execute(user(3), .consume(800))
            for _ in 0..<3 { _ = try await engine.execute(user(3), .consume(1)) }
            _ = try await engine.execute(user(3), .reserve(1, key: messageKey("c"), ttlSeconds: 60))
            _ = try await engine.execute(user(3), .check(1))
            _ = try await engine.execute(user(3), .usage)
            #expect(engine.engine.activity == Activity(messages: 818, blocked: 4))
        }
        #expect(try await database.psql.number("select sum(message_count) from message_usage") == 818)
    }

    @Test("count a message whose reply was lost")
    func lostReply() async throws {
        let database = try await TestDatabase.fresh(at: noon)
        let proxy = try await database.proxy()
        defer { proxy.close() }
        let engine = EngineHarness(database.conninfo(through: proxy), lanes: 1)
        try await engine.running {
            _ = try await engine.execute(user(1), .setPlan(PlanChange(user: user(1), plan: "paid")))
            _ = try await engine.execute(user(1), .consume(1))
            proxy.arm(.reply("_batch"))
            #expect(try await engine.execute(user(1), .consume(5)).isAllowed)
            proxy.arm(.reply("_batch"))
            _ = try await engine.execute(user(1), .reserve(7, key: messageKey("a"), ttlSeconds: 60))
            proxy.arm(.reply("_batch"))
            #expect(try await engine.execute(user(1), .commit(4, key: messageKey("a"))).isAllowed)
            #expect(proxy.cuts == 3)
            #expect(engine.engine.activity == Activity(messages: 10, blocked: 0))
            // The lane updates the snapshot after it has answered.
            try await waitUntil("three losses are reported") { engine.engine.snapshot.reconnects == 3 }
        }
        #expect(try await database.count(of: user(1), period: "2026-11") == 10)
    }

    @Test("have the sizes of batches, their queue waits and the times of statements")
    func times() async throws {
        let database = try await TestDatabase.fresh()
        let engine = EngineHarness(database.conninfo, lanes: 1)
        let start = ContinuousClock.now
        try await engine.running {
            for size in [1, 7, 40] { _ = try await engine.execute((0..<size).map { (user(UInt64($0)), .consume(1)) }) }
            for _ in 0..<3 { _ = try await engine.execute(user(1), .usage) }
        }
        let metrics = engine.engine.metrics
        let sizes = metrics.batchSizes
        #expect(sizes.count == 6 && sizes.sum == 51)
        #expect(sizes.counts[0] == 4 && sizes.counts[3] == 1 && sizes.counts[6] == 1)
        #expect(metrics.queueWaits.count == 6)
        let counts = Dictionary(uniqueKeysWithValues: metrics.statements.map { ($0.kind, $0.times.count) })
        // New users are counted on the slow path: the first, six more, thirty-three more.
        #expect(counts == [.count: 3, .slowPath: 3, .read: 3])
        // Sequential, so together they took no longer than the test.
        let elapsed = ContinuousClock.now - start
        #expect(metrics.statements.allSatisfy { $0.times.sum > 0 })
        #expect(.microseconds(metrics.statements.reduce(0) { $0 + $1.times.sum }) <= elapsed)
        #expect(engine.engine.snapshot.batches == 6 && engine.engine.snapshot.requests == 51)
        #expect(metrics.queueDepths == [0])
    }

    @Test("count requests whose outcome is unknown")
    func unknown() async throws {
        let database = try await TestDatabase.fresh()
        let proxy = try await database.proxy()
        defer { proxy.close() }
        let engine = EngineHarness(database.conninfo(through: proxy), lanes: 1)
        try await engine.running {
            _ = try await engine.execute(user(1), .consume(1))
            #expect(engine.engine.metrics.outcomesUnknown == 0)
            proxy.refusesConnectionsAfterCut = true
            proxy.arm(.reply("_batch"))
            let requests: [(UserID, EngineOperation)] = [(user(1), .consume(1)), (user(2), .consume(1))]
            let outcomes = try await engine.execute(requests, within: .seconds(4))
            #expect(outcomes.allSatisfy { $0.failure?.code == .unknown })
            proxy.refusesConnections = false
        }
        #expect(engine.engine.metrics.outcomesUnknown == 2)
    }
}
