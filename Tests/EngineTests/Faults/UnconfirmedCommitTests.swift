import Logging
import Postgres
import Synchronization
import TestSupport
import Testing
import Usage

@testable import Engine

/// A server with a migrated database, whose commits can be made to wait for a standby that never connects.
///
/// If such a wait is cancelled, PostgreSQL commits without the standby, and reports only a WARNING. The database's and
/// the login's own settings hide it (client_min_messages) or turn the wait off (synchronous_commit); the lanes must
/// override them.
private struct PrimaryWithoutStandby {
    private let directory: TemporaryDirectory
    private let server: PrivateServer
    let conninfo: String
    let psql: Session

    static func start() async throws -> PrimaryWithoutStandby {
        let directory = try TemporaryDirectory()
        let server = PrivateServer(
            dataDirectory: directory.path,
            logger: .silent,
            additionalSettings: [("fsync", "off"), ("shared_buffers", "16MB")]
        )
        let conninfo = try await server.start().conninfo
        let psql = try await Session.open(conninfo)
        _ = try await psql.run { try Schema.migrate($0) }
        for setting in ["client_min_messages = error", "synchronous_commit = local"] {
            try await psql.execute(
                """
                alter database headroom set \(setting);
                alter role headroom set \(setting);
                alter role headroom in database headroom set \(setting);
                """
            )
        }
        try await psql.execute("set synchronous_commit = local")
        return PrimaryWithoutStandby(directory: directory, server: server, conninfo: conninfo, psql: psql)
    }

    func stop() async { await server.stop() }

    /// Lets commits wait for the standby of this name. An empty name ends all waits.
    func requireStandby(_ name: String) async throws {
        try await psql.execute("alter system set synchronous_standby_names = '\(name)'")
        try await psql.execute("select pg_reload_conf()")
    }

    /// Identifies the lane's commit that waits for the standby now; nil if none waits.
    func waitingCommit() async throws -> String? {
        try await psql.text(
            """
            select min(pid || ' ' || query_start) from pg_stat_activity
            where application_name = 'headroom lane' and wait_event = 'SyncRep'
            """
        )
    }

    func cancelWaitingCommits() async throws {
        try await psql.execute("select pg_cancel_backend(pid) from pg_stat_activity where wait_event = 'SyncRep'")
    }
}

@Suite("A commit whose wait for the standby is cancelled")
struct UnconfirmedCommitTests {
    private static let operations: [EngineOperation] = [
        .consume(1), .setPlan(PlanChange(user: user(1), plan: "paid")), .resetUsage(nil),
    ]

    @Test("is answered only once the standby has it, whatever settings the database and the login have")
    func cancelled() async throws {
        let primary = try await PrimaryWithoutStandby.start()
        let harness = EngineHarness(primary.conninfo, lanes: 1)
        try await harness.running {
            _ = try await harness.execute(user(1), .consume(1))
            for operation in Self.operations { try await check(operation, primary, harness) }
        }
        try await primary.requireStandby("nobody")
        try await expectRisks(primary.conninfo, ["fsync=off", "synchronous_commit=local"])
        await primary.stop()
    }

    @Test("of a billing event is answered with an error, as is its repetition, until the standby has it")
    func billingEvent() async throws {
        let primary = try await PrimaryWithoutStandby.start()
        let session = try await Session.open(primary.conninfo)
        try await session.execute("set synchronous_commit = on; set client_min_messages = warning")
        try await primary.requireStandby("nobody")
        func event(_ number: Int) -> StoreEvent {
            StoreEvent("purchased", "2026-11-01", ["plan": "paid"], id: "\(number)")
        }
        // The setting takes effect shortly after the reload; earlier events are answered at once.
        var number = 0
        try await waitUntil("an event waits for the standby") {
            number += 1
            return try await !isAnswered(event(number), session, primary)
        }
        let stored = "select count(*) from headroom.billing_events where id = '\(number)' and outcome = 'applied'"
        #expect(try await primary.psql.number(stored) == 1, "it is committed, without a standby")
        #expect(try await !isAnswered(event(number), session, primary))
        try await primary.requireStandby("")
        try await waitUntil("its repetition is answered") { try await isAnswered(event(number), session, primary) }
        #expect(try await session.apply(event(number))["outcome"] == "duplicate")
        await primary.stop()
    }

    /// Whether the event is answered, where every wait for a standby is cancelled.
    private func isAnswered(
        _ event: StoreEvent,
        _ session: Session,
        _ primary: PrimaryWithoutStandby
    ) async throws -> Bool {
        let isAnswered = Mutex(Bool?.none)
        async let application: Void = {
            do {
                try await session.apply(event)
                isAnswered.withLock { $0 = true }
            } catch {
                #expect((error as? PostgresError)?.kind == .timedOut, "\(error)")
                isAnswered.withLock { $0 = false }
            }
        }()
        try await waitUntil("an answer or an error") {
            try await primary.cancelWaitingCommits()
            return isAnswered.withLock { $0 != nil }
        }
        await application
        return isAnswered.withLock { $0 == true }
    }

    private func check(
        _ operation: EngineOperation,
        _ primary: PrimaryWithoutStandby,
        _ harness: EngineHarness
    ) async throws {
        try await primary.requireStandby("nobody")
        // The setting takes effect shortly after the reload; earlier commits are answered at once.
        var slots = harness.submit([(user(1), operation)])
        var commit: String?
        try await waitUntil("a commit waits for the standby") {
            if let last = slots.last, harness.mailbox.hasOutcome(of: last) {
                slots += harness.submit([(user(1), operation)])
            }
            commit = try await primary.waitingCommit()
            return commit != nil
        }
        let last = try #require(slots.last)
        for _ in 0..<3 {
            try await primary.cancelWaitingCommits()
            try await waitUntil("another commit waits, or the request is answered") {
                let next = try await primary.waitingCommit()
                defer { commit = next ?? commit }
                return harness.mailbox.hasOutcome(of: last) || (next != nil && next != commit)
            }
            #expect(!harness.mailbox.hasOutcome(of: last), "\(operation) was answered before the standby had it")
        }
        try await primary.requireStandby("")
        let outcomes = try await harness.outcomes(of: slots)
        for outcome in outcomes {
            #expect(outcome.answer?.status == .allowed || outcome.answer?.status == .ok, "\(outcome)")
        }
        guard case .batched(.consume, _) = operation else { return }
        // The user has sent one message before.
        #expect(outcomes.map { $0.answer?.snapshot.used } == outcomes.indices.map { $0 + 2 }, "each is counted once")
    }

    private final class NoTokens: TokenObserver {
        func update(_ snapshot: TokenSnapshot) {}
        func readFailed(_ error: PostgresError) {}
        func takeUsedTokens() -> [Int64] { [] }
    }

    private func expectRisks(_ conninfo: String, _ risks: [String]) async throws {
        let log = RecordingLog()
        let monitor = DatabaseMonitor(
            database: DatabaseTopology(conninfo),
            interval: .milliseconds(50),
            tokens: NoTokens(),
            logger: log.logger
        )
        let run = Task { await monitor.run() }
        do {
            try await waitUntil("the monitor reports the risks") { monitor.status.durabilityRisks == risks }
        } catch {
            Issue.record("\(error); \(monitor.status.durabilityRisks ?? [])")
        }
        monitor.close()
        await run.value
        #expect(log.events.contains { $0.level == .warning && $0.metadata.contains("synchronous_commit=local") })
    }
}
