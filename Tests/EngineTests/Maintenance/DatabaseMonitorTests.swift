import Logging
import Postgres
import Synchronization
import TestSupport
import Testing
import Usage

@testable import Engine

/// Records the calls of a monitor.
private final class RecordingObserver: TokenObserver, Sendable {
    struct State {
        var names: [[String]] = []
        var failures: [PostgresError] = []
        var used: [Int64] = []
    }

    let state = Mutex(State())

    var names: [String]? { state.withLock { $0.names.last } }

    func update(_ snapshot: TokenSnapshot) { state.withLock { $0.names.append(snapshot.tokens.map(\.name)) } }

    func readFailed(_ error: PostgresError) { state.withLock { $0.failures.append(error) } }

    func takeUsedTokens() -> [Int64] {
        state.withLock { state in
            defer { state.used = [] }
            return state.used
        }
    }
}

@Suite("The database monitor")
struct DatabaseMonitorTests {
    private func monitoring(
        _ database: TestDatabase,
        interval: Duration,
        _ body: @Sendable (RecordingObserver) async throws -> Void
    ) async throws {
        try await monitoring(database, interval: interval, log: RecordingLog()) { observer, _ in
            try await body(observer)
        }
    }

    private func monitoring(
        _ database: TestDatabase,
        interval: Duration,
        renewalLeeway: Duration = .zero,
        log: RecordingLog,
        _ body: @Sendable (RecordingObserver, DatabaseMonitor) async throws -> Void
    ) async throws {
        let observer = RecordingObserver()
        let monitor = DatabaseMonitor(
            database: DatabaseTopology(database.conninfo),
            interval: interval,
            renewalLeeway: renewalLeeway,
            tokens: observer,
            logger: log.logger
        )
        let run = Task { await monitor.run() }
        do {
            try await body(observer, monitor)
        } catch {
            monitor.close()
            await run.value
            throw error
        }
        monitor.close()
        await run.value
    }

    private func create(_ name: String) -> String {
        "select headroom.create_token('\(name)', '{chat}', sha256('\(name)'))"
    }

    @Test("a notification reports a created or revoked token before the next poll is due")
    func notifications() async throws {
        let database = try await TestDatabase.fresh()
        try await monitoring(database, interval: .seconds(3_600)) { observer in
            try await waitUntil("the first poll") { observer.names == [] }
            try await database.psql.execute(create("app"))
            try await waitUntil("the token is reported") { observer.names == ["app"] }
            try await database.psql.execute("select headroom.revoke_token(1)")
            try await waitUntil("the revocation is reported") { observer.names == [] }
        }
    }

    @Test("finds changes without a notification at its next poll")
    func polling() async throws {
        let database = try await TestDatabase.fresh()
        try await database.psql.execute("alter table headroom.tokens disable trigger notify_tokens_changed")
        try await monitoring(database, interval: .milliseconds(50)) { observer in
            try await waitUntil("the first poll") { observer.names == [] }
            try await database.psql.execute(create("app"))
            try await waitUntil("the token is found") { observer.names == ["app"] }
        }
    }

    @Test("counts the renewals that are awaited")
    func awaitedRenewals() async throws {
        let database = try await TestDatabase.fresh()
        try await database.psql.execute(
            """
            insert into headroom.subscribers (user_id)
            select ('00000000-0000-4000-8000-00000000000' || number)::uuid from generate_series(1, 4) as number;
            insert into headroom.subscriptions (user_id, original_transaction_id, plan, started_at, expires_at, renews)
            select user_id, 'sold ' || user_id, 'paid', headroom.now() - interval '31 days',
                headroom.now() - interval '1 minute' * (array[1, 59, 61, -1])[row_number() over (order by user_id)],
                null
            from headroom.subscribers
            """
        )
        let log = RecordingLog()
        try await monitoring(database, interval: .milliseconds(50), renewalLeeway: .seconds(3_600), log: log) {
            _,
            monitor in
            try await waitUntil("two have ended within the last hour") { monitor.status.awaitedRenewals == 2 }
            try await database.psql.execute(
                """
                update headroom.subscriptions set unsubscribed_at = headroom.now()
                where user_id = '00000000-0000-4000-8000-000000000002'
                """
            )
            try await waitUntil("one is not renewed") { monitor.status.awaitedRenewals == 1 }
        }
    }

    @Test("connects again when its connection is cut, and listens again")
    func reconnection() async throws {
        let database = try await TestDatabase.fresh()
        try await monitoring(database, interval: .milliseconds(200)) { observer in
            try await waitUntil("the first poll") { observer.names == [] }
            try await database.psql.execute(
                """
                select pg_terminate_backend(pid) from pg_stat_activity
                where application_name = 'headroom monitor' and datname = current_database()
                """
            )
            try await database.psql.execute(create("app"))
            try await waitUntil("the token is found") { observer.names == ["app"] }
            #expect(observer.state.withLock { !$0.failures.isEmpty })
        }
    }

    @Test("reads the status while the tokens cannot be read, and the tokens once they can")
    func unreadableTokens() async throws {
        let database = try await TestDatabase.fresh()
        try await database.psql.execute("revoke all on headroom.tokens from headroom_service")
        try await monitoring(database, interval: .milliseconds(50), log: RecordingLog()) { observer, monitor in
            try await waitUntil("a poll failed") {
                observer.state.withLock { $0.failures.contains { $0.sqlState == .insufficientPrivilege } }
            }
            #expect(monitor.databaseAnswers && monitor.status.schemaVersion == Schema.newestMigration)
            #expect(monitor.problem == nil && observer.names == nil)
            try await database.psql.execute("grant select on headroom.tokens to headroom_service")
            try await waitUntil("the tokens are read") { observer.names == [] }
        }
    }

    @Test("reads the tokens while the status cannot be read")
    func unreadableFacts() async throws {
        let database = try await TestDatabase.fresh()
        try await database.psql.execute("revoke all on headroom.migrations from headroom_service")
        try await database.psql.execute(create("app"))
        try await monitoring(database, interval: .milliseconds(50), log: RecordingLog()) { observer, monitor in
            try await waitUntil("the tokens are read") { observer.names == ["app"] }
            try await waitUntil("the poll failed") { monitor.problem != nil }
            #expect(monitor.problem == "the database refused a statement with SQLSTATE 42501")
            #expect(monitor.databaseAnswers && monitor.status.schemaVersion == nil)
        }
    }

    @Test("warns once of settings with which an answered message may be lost, also across reconnections")
    func durability() async throws {
        let database = try await TestDatabase.fresh()
        let log = RecordingLog()
        // Without a standby in synchronous_standby_names, no commit waits for one, whatever synchronous_commit is.
        let name = try #require(try await database.psql.text("select current_database()"))
        try await database.psql.execute("alter database \(name) set synchronous_commit = local")
        try await monitoring(database, interval: .milliseconds(20), log: log) { observer, monitor in
            try await waitUntil("some polls") { observer.state.withLock { $0.names.count > 2 } }
            // The test server has fsync off for speed.
            #expect(monitor.status.durabilityRisks == ["fsync=off"])
            try await database.psql.execute(
                """
                select pg_terminate_backend(pid) from pg_stat_activity
                where application_name = 'headroom monitor' and datname = current_database()
                """
            )
            try await waitUntil("the loss is noticed") { observer.state.withLock { !$0.failures.isEmpty } }
            let before = observer.state.withLock { $0.names.count }
            try await waitUntil("it reads again") { observer.state.withLock { $0.names.count > before } }
        }
        let warnings = log.events.filter { $0.level == .warning }
        #expect(warnings.count == 1 && warnings[0].metadata.contains("fsync=off"), "\(warnings)")
    }

    @Test("records which tokens were used")
    func use() async throws {
        let database = try await TestDatabase.fresh()
        try await database.psql.execute(create("app"))
        try await monitoring(database, interval: .milliseconds(50)) { observer in
            try await waitUntil("the first poll") { observer.names == ["app"] }
            observer.state.withLock { $0.used = [1] }
            try await waitUntil("the use is recorded") {
                try await database.psql.number("select count(*) from headroom.tokens where last_used_at is not null")
                    == 1
            }
        }
    }
}
