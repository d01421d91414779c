import Logging
import Postgres
import Synchronization
import TestSupport
import Testing
import Usage

@testable import Engine

/// Remembers what a monitor told.
private final class Heard: TokenKeeper, Sendable {
    struct State {
        var readings: [[String]] = []
        var misses: [PostgresError] = []
        var used: [Int64] = []
    }

    let state = Mutex(State())

    var names: [String]? { state.withLock { $0.readings.last } }

    func take(_ reading: TokenReading) {
        state.withLock { $0.readings.append(reading.tokens.map(\.name)) }
    }

    func miss(_ error: PostgresError) {
        state.withLock { $0.misses.append(error) }
    }

    func takeUsed() -> [Int64] {
        state.withLock { state in
            defer { state.used = [] }
            return state.used
        }
    }
}

@Suite("The database monitor")
struct DatabaseMonitorTests {
    private func watch(
        _ database: TestDatabase,
        interval: Duration,
        _ body: @Sendable (Heard) async throws -> Void
    ) async throws {
        try await watch(database, interval: interval, log: RecordingLog()) { heard, _ in try await body(heard) }
    }

    private func watch(
        _ database: TestDatabase,
        interval: Duration,
        log: RecordingLog,
        _ body: @Sendable (Heard, DatabaseMonitor) async throws -> Void
    ) async throws {
        let heard = Heard()
        let monitor = DatabaseMonitor(
            databaseURL: database.conninfo,
            interval: interval,
            tokens: heard,
            logger: log.logger
        )
        let run = Task { await monitor.run() }
        do {
            try await body(heard, monitor)
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

    @Test("hears of a token when it is made and when it is revoked, without waiting for its next look")
    func notifications() async throws {
        let database = try await TestDatabase.fresh()
        try await watch(database, interval: .seconds(3_600)) { heard in
            try await waitUntil("the first look") { heard.names == [] }
            try await database.psql.execute(create("app"))
            try await waitUntil("the token is heard of") { heard.names == ["app"] }
            try await database.psql.execute("select headroom.revoke_token(1)")
            try await waitUntil("the revocation is heard of") { heard.names == [] }
        }
    }

    @Test("finds changes that nobody tells, at its next look")
    func polling() async throws {
        let database = try await TestDatabase.fresh()
        try await database.psql.execute("alter table headroom.tokens disable trigger notify_tokens_changed")
        try await watch(database, interval: .milliseconds(50)) { heard in
            try await waitUntil("the first look") { heard.names == [] }
            try await database.psql.execute(create("app"))
            try await waitUntil("the token is found") { heard.names == ["app"] }
        }
    }

    @Test("connects again when its connection is cut, and listens again")
    func reconnection() async throws {
        let database = try await TestDatabase.fresh()
        try await watch(database, interval: .milliseconds(200)) { heard in
            try await waitUntil("the first look") { heard.names == [] }
            try await database.psql.execute(
                """
                select pg_terminate_backend(pid) from pg_stat_activity
                where application_name = 'headroom monitor' and datname = current_database()
                """
            )
            try await database.psql.execute(create("app"))
            try await waitUntil("the token is found") { heard.names == ["app"] }
            #expect(heard.state.withLock { !$0.misses.isEmpty })
        }
    }

    @Test("reads all else where the tokens cannot be read, and the tokens as soon as they can be")
    func unreadableTokens() async throws {
        let database = try await TestDatabase.fresh()
        try await database.psql.execute("revoke all on headroom.tokens from headroom_service")
        try await watch(database, interval: .milliseconds(50), log: RecordingLog()) { heard, monitor in
            try await waitUntil("a look failed") {
                heard.state.withLock { $0.misses.contains { $0.sqlState == .insufficientPrivilege } }
            }
            #expect(monitor.databaseAnswers && monitor.facts.schemaVersion == Schema.newestMigration)
            #expect(monitor.problem == nil && heard.names == nil)
            try await database.psql.execute("grant select on headroom.tokens to headroom_service")
            try await waitUntil("they are read") { heard.names == [] }
        }
    }

    @Test("reads the tokens where the other facts cannot be read")
    func unreadableFacts() async throws {
        let database = try await TestDatabase.fresh()
        try await database.psql.execute("revoke all on headroom.migrations from headroom_service")
        try await database.psql.execute(create("app"))
        try await watch(database, interval: .milliseconds(50), log: RecordingLog()) { heard, monitor in
            try await waitUntil("they are read") { heard.names == ["app"] }
            try await waitUntil("the look failed") { monitor.problem != nil }
            #expect(monitor.problem == "the database refused a statement with SQLSTATE 42501")
            #expect(monitor.databaseAnswers && monitor.facts.schemaVersion == nil)
        }
    }

    @Test("warns once of settings with which an answered message may be lost, also across reconnections")
    func durability() async throws {
        let database = try await TestDatabase.fresh()
        let log = RecordingLog()
        // Without the name of a standby nothing waits for one, whatever synchronous_commit says.
        let name = try #require(try await database.psql.text("select current_database()"))
        try await database.psql.execute("alter database \(name) set synchronous_commit = local")
        try await watch(database, interval: .milliseconds(20), log: log) { heard, monitor in
            try await waitUntil("some looks") { heard.state.withLock { $0.readings.count > 2 } }
            // This server has it off for speed.
            #expect(monitor.facts.durabilityRisks == ["fsync=off"])
            try await database.psql.execute(
                """
                select pg_terminate_backend(pid) from pg_stat_activity
                where application_name = 'headroom monitor' and datname = current_database()
                """
            )
            try await waitUntil("it is noticed") { heard.state.withLock { !$0.misses.isEmpty } }
            let before = heard.state.withLock { $0.readings.count }
            try await waitUntil("it reads again") { heard.state.withLock { $0.readings.count > before } }
        }
        let warnings = log.events.filter { $0.level == .warning }
        #expect(warnings.count == 1 && warnings[0].metadata.contains("fsync=off"), "\(warnings)")
    }

    @Test("notes which tokens were used")
    func use() async throws {
        let database = try await TestDatabase.fresh()
        try await database.psql.execute(create("app"))
        try await watch(database, interval: .milliseconds(50)) { heard in
            try await waitUntil("the first look") { heard.names == ["app"] }
            heard.state.withLock { $0.used = [1] }
            try await waitUntil("it is noted") {
                try await database.psql.number("select count(*) from headroom.tokens where last_used_at is not null")
                    == 1
            }
        }
    }
}
