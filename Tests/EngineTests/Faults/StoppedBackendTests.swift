import Foundation
import TestSupport
import Testing
import Usage

@testable import Engine

/// A stopped process may continue at any time, with a statement that its lane has abandoned.
@Suite("A backend that is stopped and continues later", .serialized)
struct StoppedBackendTests {
    private func withStore(
        requestTimeout: Duration = waitLimit,
        _ body: @Sendable (TestDatabase, Proxy, EngineHarness) async throws -> Void
    ) async throws {
        let database = try await TestDatabase.fresh()
        let proxy = try await database.proxy()
        defer { proxy.close() }
        let harness = EngineHarness(database.conninfo(through: proxy), lanes: 1, requestTimeout: requestTimeout)
        try await harness.running {
            // Creates the row, so that the fast path counts the next message.
            #expect(try await harness.execute([(user(1), .consume(1))], within: waitLimit)[0].isAllowed)
            try await body(database, proxy, harness)
        }
    }

    private func backend(_ database: TestDatabase) async throws -> pid_t {
        let number = try await database.psql.number(
            """
            select pid from pg_stat_activity where datname = current_database() and application_name = 'headroom lane'
            """
        )
        return pid_t(try #require(number))
    }

    private func withStoppedBackend(
        requestTimeout: Duration = waitLimit,
        _ body: @Sendable (TestDatabase, Proxy, EngineHarness, pid_t) async throws -> Void
    ) async throws {
        try await withStore(requestTimeout: requestTimeout) { database, proxy, harness in
            let process = try await backend(database)
            kill(process, SIGSTOP)
            defer { kill(process, SIGCONT) }
            try await body(database, proxy, harness, process)
        }
    }

    private func goOn(_ process: pid_t, _ database: TestDatabase) async throws {
        kill(process, SIGCONT)
        try await waitUntil("the backend ends") {
            try await database.psql.number("select count(*) from pg_stat_activity where pid = \(process)") == 0
        }
    }

    @Test("changes nothing when its batch was sent again on another connection")
    func resent() async throws {
        try await withStoppedBackend { database, proxy, harness, process in
            proxy.arm(.abandon("count_batch"))
            let outcomes = try await harness.execute([(user(1), .consume(2)), (user(1), .consume(3))])
            #expect(outcomes.map { $0.answer?.snapshot.used } == [3, 6])
            #expect(proxy.cuts == 1)
            try await goOn(process, database)
            #expect(try await database.count(of: user(1), period: "trial") == 6)
            #expect(try await harness.execute(user(1), .consume(1)).answer?.snapshot.used == 7)
        }
    }

    /// Answered while the backend is stopped, so only because of the deadline.
    private func executeInVain(_ harness: EngineHarness, within timeout: Duration) async throws {
        try await waitUntil("a message is sent before its deadline") {
            let start = ContinuousClock.now
            let outcomes = try await harness.execute([(user(1), .consume(2)), (user(1), .usage)], within: timeout)
            #expect(ContinuousClock.now - start >= timeout)
            // Late ones were not sent, on a machine that is slow.
            return outcomes.map(\.failure) == [.unknown, .unknown]
        }
    }

    @Test("is waited for until the deadline, after which the outcome is unknown, and then as long again")
    func silent() async throws {
        let timeout = Duration.seconds(4)
        try await withStoppedBackend(requestTimeout: timeout) { database, _, harness, process in
            let start = ContinuousClock.now
            try await executeInVain(harness, within: .milliseconds(500))
            try await waitUntil("the lane connects again") { harness.engine.snapshot.reconnects == 1 }
            #expect(ContinuousClock.now - start >= timeout)
            let again = try await harness.execute([(user(1), .consume(4))], within: waitLimit)
            #expect(again[0].answer?.snapshot.used == 5)
            try await goOn(process, database)
            // The outcome was unknown: it may count now, at most once.
            let count = try await database.count(of: user(1), period: "trial")
            #expect(count == 5 || count == 7)
        }
    }

    @Test("is used further when it continues soon after the deadline")
    func late() async throws {
        try await withStoppedBackend { database, _, harness, process in
            try await executeInVain(harness, within: .milliseconds(100))
            kill(process, SIGCONT)
            // Waits until the late statement has ended, which has counted two.
            #expect(try await harness.execute(user(1), .consume(4)).answer?.snapshot.used == 7)
            #expect(try await backend(database) == process)
            #expect(harness.engine.snapshot.reconnects == 0)
            #expect(try await database.count(of: user(1), period: "trial") == 7)
        }
    }

    @Test("and loses its connection before it has written, so that a request that was answered as late never counts")
    func lateRequest() async throws {
        try await withStoppedBackend { database, proxy, harness, process in
            // Three keys of each user: their batch locks and reads before it writes.
            func keyed(_ user: UserID, within timeout: Duration) -> [(UserID, EngineOperation, timeout: Duration)] {
                ["a", "b", "c"].map { (user, .consume(2, key: messageKey($0)), timeout: timeout) }
            }
            let slots = harness.submit(keyed(user(2), within: .milliseconds(100)) + keyed(user(3), within: waitLimit))
            let late = try await harness.outcomes(of: Array(slots[..<3]))
            #expect(late.allSatisfy { $0 == .failure(.late) })
            proxy.cutAll()
            let others = try await harness.outcomes(of: Array(slots[3...]))
            #expect(others.map { $0.answer?.snapshot.used } == [2, 4, 6])
            try await goOn(process, database)
            #expect(try await database.count(of: user(2), period: "trial") == nil)
            #expect(try await database.count(of: user(3), period: "trial") == 6)
        }
    }

    @Test("or waits for the counts of models and members while a request is answered as late, which never counts")
    func lateRequestWithParts() async throws {
        try await withStore { database, _, harness in
            try await database.psql.execute(
                "insert into headroom.plan_limits (plan, kind, name) values ('trial', 'member', '*')"
            )
            try await database.psql.execute("begin; lock table headroom.usage_parts in access exclusive mode")
            let parts = try #require(MessageParts(member: user(9)))
            let slots = harness.submit([
                (user(2), .batched(.consume(2), parts: parts), timeout: .milliseconds(500)),
                (user(3), .batched(.consume(2), parts: parts), timeout: waitLimit),
            ])
            try await waitUntil("the batch waits for the counts") {
                try await isWaiting("query ~ 'name: read_parts'", database)
            }
            #expect(try await harness.outcomes(of: [slots[0]]) == [.failure(.late)])
            try await database.psql.execute("commit")
            #expect(try await harness.outcomes(of: [slots[1]])[0].answer?.snapshot.used == 2)
            #expect(try await database.count(of: user(2), period: "trial") == nil)
        }
    }

    /// Whether one backend that meets a condition waits for a lock. A transaction sees the backends as they were when
    /// it first looked, unless it forgets that.
    private func isWaiting(_ condition: String, _ database: TestDatabase) async throws -> Bool {
        try await database.psql.execute("select pg_stat_clear_snapshot()")
        let waiting = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and \(condition)"
        return try await database.psql.number(waiting) == 1
    }

    /// Stops the backend while its batch waits for the row of `locked`, cuts its connection, and unlocks the row.
    ///
    /// - Returns: the outcomes of the batch, and after how long they arrived.
    private func stopWaiting(
        for locked: UserID,
        _ users: [UserID],
        _ database: TestDatabase,
        _ proxy: Proxy,
        _ harness: EngineHarness,
        _ process: pid_t
    ) async throws -> ([Outcome], Duration) {
        try await database.psql.execute("begin; select from message_usage where user_id = '\(locked)' for update")
        let start = ContinuousClock.now
        let slots = harness.submit(users.map { ($0, .consume(2)) })
        try await waitUntil("the batch waits for the row") { try await isWaiting("pid = \(process)", database) }
        kill(process, SIGSTOP)
        proxy.abandonAll()
        try await database.psql.execute("commit")
        return (try await harness.outcomes(of: slots), ContinuousClock.now - start)
    }

    @Test("changes nothing if it had locked no user when its batch was sent again on another connection")
    func overtaken() async throws {
        try await withStore { database, proxy, harness in
            let process = try await backend(database)
            defer { kill(process, SIGCONT) }
            let (outcomes, _) = try await stopWaiting(for: user(1), [user(1)], database, proxy, harness, process)
            #expect(outcomes[0].answer?.snapshot.used == 3)
            try await goOn(process, database)
            #expect(try await database.count(of: user(1), period: "trial") == 3)
            #expect(try await harness.execute(user(1), .consume(1)).answer?.snapshot.used == 4)
        }
    }

    @Test("keeps its users locked, so that its batch is not counted twice, and the outcome is unknown")
    func holdsUsers() async throws {
        let requestTimeout = Duration.seconds(8)
        try await withStore(requestTimeout: requestTimeout) { database, proxy, harness in
            #expect(try await harness.execute([(user(2), .consume(1))], within: waitLimit)[0].isAllowed)
            let process = try await backend(database)
            defer { kill(process, SIGCONT) }
            let users = [user(1), user(2)]
            let (outcomes, elapsed) = try await stopWaiting(for: user(2), users, database, proxy, harness, process)
            #expect(outcomes.map(\.failure) == [.unknown, .unknown])
            #expect(elapsed >= requestTimeout)
            try await goOn(process, database)
            try await waitUntil("the lane connects again") { harness.isConnected }
            let counts = try await [
                database.count(of: user(1), period: "trial"), database.count(of: user(2), period: "trial"),
            ]
            #expect(counts == [1, 1] || counts == [3, 3])
            let used = try await harness.execute(user(1), .consume(1)).answer?.snapshot.used
            #expect(used == (counts[0] ?? 0) + 1)
        }
    }
}
