import TestSupport
import Testing
import Usage

@testable import Engine

@Suite("Two engines on one database")
struct TwoEnginesTests {
    private let users = (0..<4).map { user($0) }
    /// Three of each engine.
    private static let clients = 6

    private func withEngines(_ body: @Sendable (TestDatabase, [EngineHarness]) async throws -> Void) async throws {
        let database = try await TestDatabase.fresh()
        let (one, other) = (EngineHarness(database.conninfo), EngineHarness(database.conninfo))
        try await one.running { try await other.running { try await body(database, [one, other]) } }
        for harness in [one, other] { #expect(harness.log.count(of: "statement refused") == 0) }
        // After a deadlock the statement is sent again. It is sent again, too, if both engines insert the same rows.
        #expect(try await database.deadlocks == 0)
    }

    /// Each engine executes batches of requests, with the users in random order.
    private func consume(_ engines: [EngineHarness], rounds: Int) async throws -> [Answer] {
        try await withThrowingTaskGroup(of: [Answer].self) { group in
            for (number, engine) in engines.enumerated() {
                for client in 0..<TwoEnginesTests.clients / 2 {
                    group.addTask {
                        var random = SeededGenerator(seed: UInt64(number * 10 + client))
                        var answers: [Answer] = []
                        for _ in 0..<rounds {
                            let requests = users.shuffled(using: &random).map { ($0, EngineOperation.consume(1)) }
                            let outcomes = try await engine.execute(requests + requests.reversed())
                            for outcome in outcomes { answers.append(try #require(outcome.answer, "\(outcome)")) }
                        }
                        return answers
                    }
                }
            }
            return try await group.reduce(into: []) { $0 += $1 }
        }
    }

    @Test("answer each used value once, up to the limit")
    func usedValues() async throws {
        try await withEngines { database, engines in
            try await database.psql.execute("update headroom.plans set allowance = 250 where plan = 'trial'")
            let answers = try await consume(engines, rounds: 30)
            let requestsPerUser = TwoEnginesTests.clients * 30 * 2
            for user in users {
                let own = answers.filter { $0.user == user }
                let used = own.filter { $0.status == .allowed }.map(\.snapshot.used)
                #expect(used.sorted() == Array(1...250))
                let refused = own.filter { $0.status != .allowed }
                #expect(refused.count == requestsPerUser - 250)
                #expect(refused.allSatisfy { $0.status == .blocked(.trialLimitReached) && $0.snapshot.used == 250 })
                #expect(own.filter { $0.crossed != nil }.map(\.snapshot.used).sorted() == [200, 238, 250])
                #expect(try await database.count(of: user, period: "trial") == 250)
            }
        }
    }

    @Test("never deadlock with each other, nor with resets of the whole period")
    func resets() async throws {
        try await withEngines { database, engines in
            // A subscription that ends the trial's limit, so that counting goes on whatever the resets do.
            try await database.psql.execute("update headroom.plans set allowance = 1000000 where plan = 'trial'")
            let other = try await Session.open(database.conninfo)
            // From before the first message until after the last one.
            let resets = Task {
                while !Task.isCancelled { try await other.execute("select reset_billing_period('trial')") }
            }
            defer { resets.cancel() }
            let answers = try await consume(engines, rounds: 40)
            resets.cancel()
            try await resets.value
            #expect(answers.allSatisfy { $0.status == .allowed })
            let left = try await database.psql.number("select max(message_count) from message_usage") ?? 0
            #expect(left < TwoEnginesTests.clients * 40 * 2, "at least one reset came in between")
        }
    }
}
