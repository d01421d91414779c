import TestSupport
import Testing
import Usage

@testable import Engine

@Suite("Two stores on one database")
struct TwoStoresTests {
    private let users = (0..<4).map { user($0) }
    /// Three of each store.
    private static let clients = 6

    private func withStores(
        _ body: @Sendable (TestDatabase, [EngineHarness]) async throws -> Void
    ) async throws {
        let database = try await TestDatabase.fresh()
        let (one, other) = (EngineHarness(database.conninfo), EngineHarness(database.conninfo))
        try await one.running {
            try await other.running { try await body(database, [one, other]) }
        }
        for harness in [one, other] {
            // A deadlock costs a second and is then sent again: nobody would notice but for the log.
            #expect(harness.log.count(of: "statement rolled back, sent again") == 0)
            #expect(harness.log.count(of: "statement refused") == 0)
        }
    }

    /// Every store asks again and again for each user, in batches whose users come in changing order.
    private func consume(
        _ stores: [EngineHarness],
        rounds: Int
    ) async throws -> [Answer] {
        try await withThrowingTaskGroup(of: [Answer].self) { group in
            for (number, store) in stores.enumerated() {
                for client in 0..<TwoStoresTests.clients / 2 {
                    group.addTask {
                        var random = SeededGenerator(seed: UInt64(number * 10 + client))
                        var answers: [Answer] = []
                        for _ in 0..<rounds {
                            let asked = users.shuffled(using: &random).map { ($0, EngineOperation.consume(1)) }
                            let outcomes = try await store.ask(asked + asked.reversed())
                            for outcome in outcomes {
                                answers.append(try #require(outcome.answer, "told \(outcome)"))
                            }
                        }
                        return answers
                    }
                }
            }
            return try await group.reduce(into: []) { $0 += $1 }
        }
    }

    @Test("hand out each used value once, up to the limit and not beyond")
    func usedValues() async throws {
        try await withStores { database, stores in
            try await database.psql.execute("update headroom.plans set allowance = 250 where plan = 'trial'")
            let answers = try await consume(stores, rounds: 30)
            let askedPerUser = TwoStoresTests.clients * 30 * 2
            for user in users {
                let own = answers.filter { $0.user == user }
                let used = own.filter { $0.status == .allowed }.map(\.snapshot.used)
                #expect(used.sorted() == Array(1...250))
                let refused = own.filter { $0.status != .allowed }
                #expect(refused.count == askedPerUser - 250)
                #expect(refused.allSatisfy { $0.status == .blocked(.trialLimitReached) && $0.snapshot.used == 250 })
                #expect(own.filter { $0.crossed != nil }.map(\.snapshot.used).sorted() == [200, 238, 250])
                #expect(try await database.count(of: user, period: "trial") == 250)
            }
        }
    }

    @Test("never deadlock with each other, nor with resets of the whole period")
    func resets() async throws {
        try await withStores { database, stores in
            // A subscription that ends the trial's limit, so that counting goes on whatever the resets do.
            try await database.psql.execute("update headroom.plans set allowance = 1000000 where plan = 'trial'")
            let other = try await Session.open(database.conninfo)
            // From before the first message until after the last one, however long that takes.
            let resets = Task {
                while !Task.isCancelled { try await other.execute("select reset_billing_period('trial')") }
            }
            defer { resets.cancel() }
            let answers = try await consume(stores, rounds: 40)
            resets.cancel()
            try await resets.value
            #expect(answers.allSatisfy { $0.status == .allowed })
            let left = try await database.psql.number("select max(message_count) from message_usage") ?? 0
            #expect(left < TwoStoresTests.clients * 40 * 2, "at least one reset came in between")
        }
    }
}
