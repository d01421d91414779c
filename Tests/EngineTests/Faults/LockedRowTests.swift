import TestSupport
import Testing
import Usage

@testable import Engine

@Suite("A row that another session has locked", .serialized)
struct LockedRowTests {
    private let users = (0..<16).map { user($0) }
    private let locked = user(5)
    private var others: [UserID] { users.filter { $0 != locked } }

    /// - Parameter body: with an engine whose lane waits a second for a lock, and another session.
    private func running(
        knownUsers: Bool = true,
        _ body: @Sendable (TestDatabase, EngineHarness, Session) async throws -> Void
    ) async throws {
        let database = try await TestDatabase.fresh()
        let harness = EngineHarness(database.conninfo, lanes: 1, requestTimeout: .seconds(4))
        try await harness.running {
            if knownUsers { try await count(users, harness, used: 1) }
            try await body(database, harness, Session.open(database.conninfo))
        }
    }

    /// Requests that wait for a lock as long as the test holds it.
    private func submit(_ user: UserID, _ operation: EngineOperation, _ harness: EngineHarness) -> UInt64 {
        harness.submit([(user, operation, timeout: waitLimit)])[0]
    }

    /// Counts a message of each user.
    private func count(_ users: [UserID], _ harness: EngineHarness, used: Int) async throws {
        let outcomes = try await harness.execute(users.map { ($0, .consume(1)) }, within: waitLimit)
        #expect(outcomes.map { $0.answer?.snapshot.used } == users.map { _ in used })
    }

    private func lockTimeouts(_ harness: EngineHarness) -> UInt64 { harness.engine.metrics.lockTimeouts }

    @Test("delays other users once, and this user's requests are answered in their order when it is free")
    func lockedRow() async throws {
        try await running { _, harness, other in
            try await other.execute("begin; select from message_usage where user_id = '\(locked)' for update")
            var slots: [UInt64] = []
            for round in 0..<10 {
                slots.append(submit(locked, .consume(1), harness))
                try await count(others, harness, used: 2 + round)
            }
            #expect(lockTimeouts(harness) == 1, "a look waits for no lock")
            slots.append(submit(locked, .usage, harness))
            slots.append(submit(locked, .setPlan(PlanChange(user: locked, plan: "pro")), harness))
            slots.append(submit(locked, .consume(1), harness))
            try await count(others, harness, used: 12)
            #expect(!slots.contains { harness.mailbox.hasOutcome(of: $0) })
            try await other.execute("commit")
            let answers = try await harness.outcomes(of: slots).map(\.answer)
            #expect(answers.prefix(10).map { $0?.snapshot.used } == (2...11).map { $0 })
            #expect(answers[10]?.snapshot.used == 11 && answers[10]?.snapshot.plan.name == "trial")
            #expect(answers[11]?.snapshot.plan.name == "pro")
            #expect(answers[12]?.snapshot.plan.name == "pro" && answers[12]?.status == .allowed)
        }
    }

    @Test("is one of several, and each is answered when it is free")
    func severalRows() async throws {
        try await running { database, harness, other in
            let second = user(11)
            let another = try await Session.open(database.conninfo)
            try await other.execute("begin; select from message_usage where user_id = '\(locked)' for update")
            try await another.execute("begin; select from message_usage where user_id = '\(second)' for update")
            let slots = [submit(locked, .consume(1), harness), submit(second, .consume(1), harness)]
            try await count(others.filter { $0 != second }, harness, used: 2)
            try await another.execute("commit")
            let answer = try await harness.outcomes(of: [slots[1]])[0].answer
            #expect(answer?.snapshot.used == 2)
            #expect(!harness.mailbox.hasOutcome(of: slots[0]))
            try await other.execute("commit")
            let last = try await harness.outcomes(of: [slots[0]])[0].answer
            #expect(last?.snapshot.used == 2)
        }
    }

    @Test("fails this user's requests at their deadline, and nothing was counted")
    func deadline() async throws {
        try await running { _, harness, other in
            try await other.execute("begin; select from message_usage where user_id = '\(locked)' for update")
            let outcomes = try await harness.execute(users.map { ($0, .consume(2)) })
            for (user, outcome) in zip(users, outcomes) {
                if user == locked {
                    #expect(outcome == .failure(.busy))
                } else {
                    #expect(outcome.answer?.snapshot.used == 3)
                }
            }
            let change = try await harness.execute([(locked, .setPlan(PlanChange(user: locked, plan: "paid")))])
            #expect(change == [.failure(.busy)])
            let usage = try await harness.execute(locked, .usage).answer
            #expect(usage?.snapshot.used == 1 && usage?.snapshot.plan.name == "trial", "a read needs no lock")
            try await other.execute("commit")
            try await count([locked], harness, used: 2)
        }
    }

    @Test("of a subscriber whose plan is being changed delays other new users once")
    func lockedSubscriber() async throws {
        try await running(knownUsers: false) { database, harness, other in
            try await database.psql.execute("select set_plan('\(locked)', 'pro')")
            try await other.execute("begin; select set_plan('\(locked)', 'paid')")
            let slot = submit(locked, .consume(1), harness)
            try await count(others, harness, used: 1)
            let grant = submit(locked, .grant(Grant(5, key: messageKey("a"))), harness)
            try await count(others, harness, used: 2)
            #expect(lockTimeouts(harness) == 1)
            try await other.execute("commit")
            let answers = try await harness.outcomes(of: [slot, grant]).map(\.answer)
            #expect(answers[0]?.snapshot.plan.name == "paid" && answers[0]?.snapshot.used == 1)
            #expect(answers[1]?.snapshot.limit == 805)
        }
    }

    @Test("that is being inserted is found by halving the batch")
    func insertedRow() async throws {
        try await running(knownUsers: false) { _, harness, other in
            try await other.execute("begin; select * from increment_and_check_usage('\(locked)')")
            let slot = submit(locked, .consume(1), harness)
            for round in 1...3 { try await count(others, harness, used: round) }
            #expect(!harness.mailbox.hasOutcome(of: slot))
            try await other.execute("commit")
            let answer = try await harness.outcomes(of: [slot])[0].answer
            #expect(answer?.snapshot.used == 2)
        }
    }

    @Test("is waited for by an operator's change, and by no other user")
    func change() async throws {
        try await running { _, harness, other in
            try await other.execute("begin; select from message_usage where user_id = '\(locked)' for update")
            let slot = submit(locked, .resetUsage(nil), harness)
            for round in 2...5 { try await count(others, harness, used: round) }
            #expect(lockTimeouts(harness) == 1)
            #expect(!harness.mailbox.hasOutcome(of: slot))
            try await other.execute("commit")
            let answer = try await harness.outcomes(of: [slot])[0].answer
            #expect(answer?.snapshot.used == 0)
        }
    }

    @Test("does not keep the service from ending: the requests are answered first")
    func shutdown() async throws {
        let database = try await TestDatabase.fresh()
        let harness = EngineHarness(database.conninfo, lanes: 1, requestTimeout: .seconds(4))
        let other = try await Session.open(database.conninfo)
        let slot = try await harness.running {
            try await count(users, harness, used: 1)
            try await other.execute("begin; select from message_usage where user_id = '\(locked)' for update")
            let slot = harness.submit([(locked, .consume(1))])[0]
            try await count(others, harness, used: 2)
            return slot
        }
        #expect(harness.mailbox.hasOutcome(of: slot))
        let outcome = try await harness.outcomes(of: [slot])[0]
        #expect(outcome == .failure(.busy))
        try await other.execute("commit")
    }
}
