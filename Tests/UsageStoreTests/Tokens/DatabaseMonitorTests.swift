import Logging
import Postgres
import Synchronization
import TestSupport
import Testing
import Usage

@testable import UsageStore

/// Remembers what a monitor told.
private final class Heard: TokenKeeper, Sendable {
    struct State {
        var readings: [[String]] = []
        var timesAway = 0
        var used: [Int64] = []
    }

    let state = Mutex(State())

    var names: [String]? { state.withLock { $0.readings.last } }

    func take(_ reading: TokenReading) {
        state.withLock { $0.readings.append(reading.tokens.map(\.name)) }
    }

    func takeTime() {
        state.withLock { $0.timesAway += 1 }
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
        let heard = Heard()
        let log = RecordingLog()
        let monitor = DatabaseMonitor(
            databaseURL: database.conninfo,
            interval: interval,
            tokens: heard,
            logger: log.logger
        )
        let run = Task { await monitor.run() }
        do {
            try await body(heard)
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
        try await database.psql.execute("alter table headroom.tokens disable trigger tell_tokens_changed")
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
            #expect(heard.state.withLock { $0.timesAway } > 0)
        }
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
