import TestSupport
import Testing
import Usage

@testable import Engine

/// The connection breaks after the commit and before the reply: the request was counted, and the engine does not know
/// it.
@Suite("A lost reply")
struct LostReplyTests {
    private let noon = at("2026-11-30T12:00:00Z")

    /// `engine` is connected through the proxy, `other` directly.
    private struct Scene: Sendable {
        let database: TestDatabase
        let proxy: Proxy
        let engine: EngineHarness
        let other: EngineHarness

        /// The outcomes of requests whose first reply is lost.
        func losing(
            _ asked: [(user: UserID, operation: EngineOperation)],
            meanwhile: () async throws -> Void
        ) async throws -> [Outcome] {
            let losses = engine.log.count(of: "database is away")
            proxy.arm(.reply("_batch"))
            let slots = engine.submit(asked)
            try await waitUntil("the connection breaks") { engine.log.count(of: "database is away") == losses + 1 }
            try await meanwhile()
            proxy.refusesConnections = false
            return try await engine.outcomes(of: slots)
        }
    }

    /// Runs with Ada on the paid plan and cached, so that the fast path counts her messages.
    private func running(_ body: @Sendable (Scene) async throws -> Void) async throws {
        let database = try await TestDatabase.fresh(at: noon)
        let proxy = try await database.proxy()
        proxy.refusesConnectionsAfterCut = true
        defer { proxy.close() }
        let scene = Scene(
            database: database,
            proxy: proxy,
            engine: EngineHarness(database.conninfo(through: proxy), lanes: 1),
            other: EngineHarness(database.conninfo, lanes: 1)
        )
        try await scene.engine.running {
            try await scene.other.running {
                _ = try await scene.engine.execute(ada, .setPlan(PlanChange(user: ada, plan: "paid")))
                _ = try await scene.engine.execute(ada, .consume(1))
                try await body(scene)
            }
        }
    }

    @Test("is answered without later changes: a hold, a limit, a plan, a reset")
    func changedMeanwhile() async throws {
        try await running { scene in
            let row = "where user_id = '\(ada)'"
            let changes: [@Sendable () async throws -> Void] = [
                { _ = try await scene.other.execute(ada, .reserve(9, key: messageKey("other"), ttlSeconds: 600)) },
                { try await scene.database.psql.execute("update message_usage set \"limit\" = 900 \(row)") },
                { _ = try await scene.other.execute(ada, .resetUsage(nil)) },
                { _ = try await scene.other.execute(ada, .setPlan(PlanChange(user: ada, plan: "pro"))) },
                {
                    _ = try await scene.other.execute(
                        ada,
                        .setPlan(PlanChange(user: ada, plan: "paid", state: .expired))
                    )
                },
            ]
            for (round, change) in changes.enumerated() {
                let key = messageKey("round \(round)")
                let asked: [(user: UserID, operation: EngineOperation)] = [
                    (ada, .consume(1)), (ada, .consume(2, key: key)), (ada, .consume(1)),
                ]
                let outcomes = try await scene.losing(asked, meanwhile: change)
                let answer = try #require(outcomes[1].answer)
                let repeated = try #require(try await scene.other.execute(ada, .consume(2, key: key)).answer)
                #expect(!answer.isRepeated && repeated.isRepeated)
                #expect(answer.firstNumbers == repeated.firstNumbers, "change \(round)")
                #expect(outcomes.map { $0.answer?.snapshot.used } == [-2, 0, 1].map { answer.snapshot.used + $0 })
            }
        }
    }

    @Test("over the month's end is answered with the month in which the message counted", arguments: [true, false])
    func monthEndMeanwhile(hasKey: Bool) async throws {
        try await running { scene in
            let key = messageKey("late")
            let operation = EngineOperation.consume(2, key: hasKey ? key : nil)
            let outcomes = try await scene.losing([(ada, operation)]) {
                try await scene.database.moveClock(to: at("2026-12-01T00:00:01Z"))
                _ = try await scene.other.execute(ada, .consume(40))
            }
            let answer = try #require(outcomes[0].answer)
            #expect(answer.status == .allowed && answer.snapshot.period == billingPeriod("2026-11"))
            #expect(answer.snapshot.used == 3 && answer.snapshot.held == 0 && answer.snapshot.remaining == 797)
            #expect(try await scene.database.count(of: ada, period: "2026-11") == 3)
            #expect(try await scene.database.count(of: ada, period: "2026-12") == 40)
            guard hasKey else { return }
            let repeated = try #require(try await scene.engine.execute(ada, operation).answer)
            #expect(repeated.isRepeated && repeated.firstNumbers == answer.firstNumbers)
        }
    }
}
