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

        /// The outcome of a request whose first reply is lost.
        func losing(_ user: UserID, _ operation: EngineOperation) async throws -> Outcome {
            try await losing([(user, operation)])[0]
        }

        func losing(
            _ asked: [(user: UserID, operation: EngineOperation)],
            meanwhile: () async throws -> Void = {}
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

    @Test("of a message with a key: it is counted once, and its answer equals that of a repetition")
    func keyed() async throws {
        try await running { scene in
            for round in 0..<10 {
                let key = messageKey("round \(round)")
                let answer = try #require(try await scene.losing(ada, .consume(3, key: key)).answer)
                #expect(!answer.isRepeated && answer.snapshot.used == 4 + 3 * round)
                for engine in [scene.engine, scene.other] {
                    let repeated = try #require(try await engine.execute(ada, .consume(3, key: key)).answer)
                    #expect(repeated.isRepeated && repeated.firstNumbers == answer.firstNumbers)
                }
            }
            #expect(try await scene.database.count(of: ada, period: "2026-11") == 31)
            #expect(scene.proxy.cuts == 10)
        }
    }

    @Test("of a new user's message: it is counted once, and its answer equals that of a repetition")
    func keyedAndNew() async throws {
        try await running { scene in
            for round in 0..<5 {
                let user = user(UInt64(100 + round))
                let key = messageKey("first")
                // The reply of the fast path is lost, which finds no row; then that of the slow path.
                for messages in [2, 4] {
                    let key = messages == 2 ? key : messageKey("second")
                    let answer = try #require(try await scene.losing(user, .consume(messages / 2, key: key)).answer)
                    #expect(!answer.isRepeated)
                    let repeated = try #require(
                        try await scene.other.execute(user, .consume(messages / 2, key: key)).answer
                    )
                    #expect(repeated.isRepeated && repeated.firstNumbers == answer.firstNumbers)
                }
                #expect(try await scene.database.count(of: user, period: "trial") == 3)
            }
        }
    }

    @Test(
        "of a RESERVE, a COMMIT or a RELEASE: it takes effect once, and its answer is that of a first request",
        arguments: [nil, 1]
    )
    func holds(committing messages: Int?) async throws {
        let counted = messages ?? 2
        try await running { scene in
            for round in 0..<5 {
                let (kept, given) = (messageKey("kept \(round)"), messageKey("given \(round)"))
                let held = try #require(try await scene.losing(ada, .reserve(2, key: kept, ttlSeconds: 60)).answer)
                #expect(held.status == .held && !held.isRepeated && held.snapshot.held == 2)
                _ = try await scene.other.execute(ada, .reserve(5, key: given, ttlSeconds: 60))
                let committed = try #require(try await scene.losing(ada, .commit(messages, key: kept)).answer)
                #expect(committed.status == .allowed && !committed.isRepeated)
                #expect(committed.snapshot.used == 1 + counted * (round + 1) && committed.snapshot.held == 5)
                let released = try #require(try await scene.losing(ada, .release(given)).answer)
                #expect(released.released == 5 && !released.isRepeated && released.snapshot.held == 0)
                let repeated = try await scene.other.execute([
                    (ada, .reserve(2, key: kept, ttlSeconds: 60)), (ada, .commit(messages, key: kept)),
                    (ada, .release(given)),
                ])
                #expect(repeated.compactMap { $0.answer?.isRepeated } == [true, true, true])
                #expect(repeated[0].answer?.firstNumbers == held.firstNumbers)
                #expect(repeated[1].answer?.firstNumbers == committed.firstNumbers)
                #expect(repeated[2].answer?.released == 0)
            }
            #expect(try await scene.database.count(of: ada, period: "2026-11") == 1 + 5 * counted)
            #expect(scene.proxy.cuts == 15)
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
