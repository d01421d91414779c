import TestSupport
import Testing
import Usage

@testable import Engine

/// Serialized, because each history has several database sessions.
@Suite("Keys and holds, compared with the model", .serialized)
struct HoldModelTests {
    private func fresh() async throws -> TestDatabase {
        let database = try await TestDatabase.fresh(at: HoldHistory.start)
        try await database.psql.execute("delete from headroom.plans where plan = 'paid'")
        try await database.psql.run { for plan in HoldHistory.plans { try PlanRow.write(plan, $0) } }
        return database
    }

    // In the history of the long seed, a RELEASE ends a member's window for good, because the plan's are shorter now.
    // In that of 7000, a request that counts nothing writes the row of a changed plan. In that of 15, an expired hold
    // is in the window of a row of an earlier period, in which a message is released.
    @Test(
        "are answered in random histories as by the model",
        arguments: SeededGenerator.seeds(always: [1, 2, 15, 7000, 9_290_883_733_144_980_506])
    )
    func randomHistory(seed: UInt64) async throws {
        print("keys and holds, history of seed \(seed)")
        let database = try await fresh()
        let first = EngineHarness(database.conninfo)
        let second = EngineHarness(database.conninfo, lanes: 1)
        try await first.running {
            try await second.running {
                var run = Run(database: database, engines: [first, second], seed: seed)
                for step in 0..<500 {
                    guard try await run.take(step) else { return }
                }
                print("keys and holds, history of seed \(seed): \(run.replays) replays, \(run.commits) commits")
                #expect(run.replays > 30 && run.commits > 5, "the history of seed \(seed) shows something")
            }
        }
    }

    // In the histories of the long seeds, the reply to a message in a window that another plan has opened is lost, and
    // a COMMIT is repeated that was made while another plan was in force. In that of 8015, two messages of a member in
    // one batch reach the limit, and their reply is lost.
    @Test(
        "are answered as by the model also when replies are lost",
        arguments: SeededGenerator.seeds(always: [1, 8015, 9_290_883_733_144_980_506, 13_813_615_746_197_492_459])
    )
    func randomLosses(seed: UInt64) async throws {
        print("keys, holds and lost replies, history of seed \(seed)")
        let database = try await fresh()
        let proxy = try await database.proxy()
        defer { proxy.close() }
        let engine = EngineHarness(database.conninfo(through: proxy), lanes: 1)
        try await engine.running {
            var run = Run(database: database, engines: [engine], seed: seed, proxy: proxy)
            for step in 0..<150 {
                guard try await run.take(step) else { return }
            }
            #expect(proxy.cuts > 20, "the history of seed \(seed) shows something")
        }
    }

    /// One history, in the database and in the model.
    private struct Run {
        let database: TestDatabase
        let engines: [EngineHarness]
        let seed: UInt64
        /// Loses the replies to some requests.
        let proxy: Proxy?
        var history: HoldHistory
        var model = ReferenceModel(plans: HoldHistory.plans)
        var generator: SeededGenerator
        var replays = 0
        var commits = 0
        /// The requests of each user so far, for the report of a difference.
        private var recent: [UserID: [String]] = [:]
        /// The answer to the first use of each key, with commits separate.
        private var firsts: [FirstUse: Answer] = [:]

        private struct FirstUse: Hashable {
            var user: UserID
            var key: MessageKey
            var isCommit: Bool
        }

        init(database: TestDatabase, engines: [EngineHarness], seed: UInt64, proxy: Proxy? = nil) {
            self.database = database
            self.engines = engines
            self.seed = seed
            self.proxy = proxy
            history = HoldHistory(seed: seed)
            generator = SeededGenerator(seed: ~seed)
        }

        /// False when the two disagree, because then all later answers may differ.
        mutating func take(_ number: Int) async throws -> Bool {
            let now = history.now
            switch history.next() {
            case .move(let instant):
                try await database.moveClock(to: instant)
            case .raise(let user, let difference):
                let snapshot = model.usage(user, at: now).snapshot
                let count = max(0, snapshot.used + difference)
                try await update("set message_count = \(count)", of: user, snapshot.period)
                model.setCount(user, period: snapshot.period, count: count, at: now)
                recent[user, default: []].append("step \(number), \(now): message_count = \(count)")
            case .delete(let user, let later):
                let period = model.usage(user, at: now).snapshot.period
                // And the window in whatever row it is: a refused request may have moved it, or not.
                try await database.psql.execute(
                    """
                    delete from message_usage where user_id = '\(user)' and billing_period = '\(period)';
                    update message_usage
                    set window_opened_at = null, window_ends_at = null, window_count = null, window_held = null
                    where user_id = '\(user)' and window_opened_at is not null;
                    delete from headroom.usage_parts where user_id = '\(user)' and billing_period = '\(period)';
                    update headroom.usage_parts
                    set window_opened_at = null, window_ends_at = null, window_used = null, window_held = null
                    where user_id = '\(user)' and window_opened_at is not null
                    """
                )
                model.deleteRow(user, period: period)
                model.deleteWindows(of: user)
                recent[user, default: []].append("step \(number), \(now): the row of \(period) is deleted")
                try await database.moveClock(to: later)
            case .execute(let requests):
                if let proxy, generator.chance(40) { proxy.arm(.reply("_batch")) }
                let outcomes = try await generator.element(of: engines).execute(requests)
                for (index, (user, operation)) in requests.enumerated() {
                    let place = "seed \(seed), step \(number), request \(index): \(operation) of \(user)"
                    let expected = model.outcome(of: operation, user: user, at: now)
                    let period = model.usage(user, at: now).snapshot.period
                    let actual = outcomes[index].comparable(of: operation, in: period)
                    let modelled = expected.comparable(of: operation, in: period)
                    recent[user, default: []].append("step \(number), \(now): \(operation) → \(actual.summary)")
                    let before = recent[user, default: []].suffix(60).joined(separator: "\n")
                    #expect(actual == modelled, "\(place), the model: \(modelled.summary), after \(before)")
                    guard actual == modelled, repeats(outcomes[index], operation, place) else { return false }
                }
            }
            return true
        }

        private func update(_ change: String, of user: UserID, _ period: BillingPeriod) async throws {
            try await database.psql.execute(
                "update message_usage \(change) where user_id = '\(user)' and billing_period = '\(period)'"
            )
        }

        /// Whether a repetition has the numbers of the engine's own first answer.
        private mutating func repeats(_ outcome: Outcome, _ operation: EngineOperation, _ place: String) -> Bool {
            guard let answer = outcome.answer, answer.status == .allowed || answer.status == .held else { return true }
            let use: FirstUse
            switch operation {
            case .batched(.consume(_, let key?), _), .batched(.reserve(_, let key, _), _):
                use = FirstUse(user: answer.user, key: key, isCommit: false)
            case .batched(.commit(_, let key), _):
                use = FirstUse(user: answer.user, key: key, isCommit: true)
                if !answer.isRepeated { commits += 1 }
            default:
                return true
            }
            guard answer.isRepeated else {
                firsts[use] = answer.firstNumbers
                return true
            }
            replays += 1
            #expect(firsts[use] == answer.firstNumbers, "\(place)")
            return firsts[use] == answer.firstNumbers
        }
    }
}

extension Outcome {
    /// Of a request, for the report of a difference.
    fileprivate var summary: String {
        guard let answer else { return "\(self)" }
        let snapshot = answer.snapshot
        let window = snapshot.window.map { " window \(snapshot.windowUsed)+\(snapshot.windowHeld)/\($0.limit)" } ?? ""
        let parts = snapshot.parts.map { part in
            let (name, counter) = (part.limit?.name ?? "no limit", part.counter)
            let end = counter.windowEndsAt.map { " until \($0)" } ?? ""
            return " \(name) \(counter.used)+\(counter.held), window \(counter.windowUsed)+\(counter.windowHeld)\(end)"
        }
        let counts = "\(snapshot.used)+\(snapshot.held)\(window)\(parts.joined())"
        let fallback = answer.fallback.map { " or \($0.model.text)" } ?? ""
        let extra = snapshot.balances.map { " extra \($0.messages)" } ?? ""
        let limit = "\(snapshot.limit ?? -1)\(extra)"
        return "\(answer.status) \(snapshot.plan.name) \(snapshot.period) \(counts)/\(limit)\(fallback)"
    }
}
