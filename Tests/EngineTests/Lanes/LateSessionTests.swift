import Logging
import Postgres
import TestSupport
import Testing
import Usage

@testable import Engine

@Suite("A lane's session whose statement has exceeded its deadline")
struct LateSessionTests {
    /// A lane's connection, used by one thread alone.
    private final class Scene {
        private let wake = WakePipe()
        let lane: LaneConnection

        init(_ conninfo: String) {
            let configuration = EngineConfiguration(
                database: DatabaseTopology(conninfo),
                requestTimeout: waitLimit,
                connectTimeout: waitLimit
            )
            let silence = configuration.database.silence
            silence.whenDoubted { silence.end() }
            lane = LaneConnection(
                options: configuration.sessionOptions("lane"),
                primaryLease: configuration.primaryLease,
                words: CurrentWords(),
                requestTimeout: configuration.requestTimeout,
                wake: wake,
                logger: .silent
            )
        }

        deinit {
            lane.close()
        }

        /// The lane's session, as soon as it can be used.
        func connection() throws -> DatabaseConnection {
            while true {
                lane.advance()
                if let connection = lane.connection { return connection }
                _ = wake.sleep(orUntilReadable: lane.lateSocket, until: lane.retryAt ?? .now + waitLimit)
            }
        }

        /// Sends a statement that nothing waits for.
        func sendLate(_ sql: String) throws {
            let connection = try connection()
            try connection.prepare("late", sql, deadline: .now + waitLimit)
            try connection.send(prepared: "late", Parameters())
            lane.drop(PostgresError(.timedOut, "late"))
            #expect(lane.connection == nil && lane.lateSocket >= 0)
        }

        func text(_ expression: String) throws -> String {
            try connection().query("select (\(expression))::text", deadline: .now + waitLimit).text(0, 0)
        }
    }

    private func withScene(_ body: @escaping @Sendable (Scene) throws -> Void) async throws {
        let conninfo = try await TestDatabase.fresh().conninfo
        try await onThread { try body(Scene(conninfo)) }
    }

    @Test(
        "is used again when the statement has ended, with rows or with an error, in no transaction",
        arguments: ["select 1", "select 1 / 0 from generate_series(1, 2)"]
    )
    func kept(sql: String) async throws {
        try await withScene { scene in
            let process = try scene.text("pg_backend_pid()")
            try scene.connection().execute("begin", deadline: .now + waitLimit)
            try scene.connection().execute("set local work_mem = '12345kB'", deadline: .now + waitLimit)
            try scene.sendLate(sql)
            #expect(try scene.text("current_setting('work_mem')") != "12345kB")
            #expect(try scene.text("pg_backend_pid()") == process)
            #expect(scene.lane.reconnects == 0)
        }
    }

    @Test("is replaced if no standby has confirmed the statement's commit") func unreplicated() async throws {
        try await withScene { scene in
            let process = try scene.text("pg_backend_pid()")
            // With the SQLSTATE of that warning.
            let warn = "create function pg_temp.warn() returns int language plpgsql"
            let body = "as $$ begin raise warning '.'; return 1; end $$"
            try scene.connection().execute("\(warn) \(body)", deadline: .now + waitLimit)
            try scene.sendLate("select pg_temp.warn()")
            #expect(try scene.text("pg_backend_pid()") != process)
            #expect(scene.lane.reconnects == 1)
        }
    }

    @Test("waits for locks as long as usual afterwards, although it was to wait only briefly")
    func lockTimeout() async throws {
        try await withScene { scene in
            let usual = try scene.text("current_setting('lock_timeout')")
            scene.lane.waitBriefly {
                #expect(throws: Never.self) {
                    #expect(try scene.text("current_setting('lock_timeout')") != usual)
                    try scene.sendLate("select 1")
                }
            }
            #expect(try scene.text("current_setting('lock_timeout')") == usual)
            #expect(scene.lane.reconnects == 0)
        }
    }

    @Test(
        "because of a lock goes on when the lock is released, and what it counts is counted once",
        arguments: [false, true]
    )
    func lock(isInTransaction: Bool) async throws {
        try await EngineHarness.serving(.fresh(), lanes: 1) { database, engine in
            #expect(try await engine.execute(user(1), .consume(1)).isAllowed)
            let lane = "from pg_stat_activity where datname = current_database() and application_name = 'headroom lane'"
            let process = try await database.psql.number("select pid \(lane)")
            let other = try await Session.open(database.conninfo)
            // The slow path locks first, and counts later; what it was to count is not counted.
            let keyed = ["a", "b", "c"].map { EngineOperation.consume(1, key: messageKey($0)) }
            let operations = isInTransaction ? keyed : [.consume(2)]
            try await waitUntil("a message waits for the lock at its deadline") {
                try await other.execute("begin; select from message_usage where user_id = '\(user(1))' for update")
                let slots = engine.submit(operations.map { (user(1), $0) }, within: .milliseconds(200))
                var waits = false
                try await waitUntil("the message waits, or is answered") {
                    waits = try await database.psql.number("select count(*) \(lane) and wait_event_type = 'Lock'") == 1
                    return waits || slots.allSatisfy { engine.mailbox.hasOutcome(of: $0) }
                }
                let failures = try await engine.outcomes(of: slots).map(\.failure)
                try await other.execute("commit")
                // A machine that is slow may have let the deadline pass before the message was sent.
                guard waits else { return false }
                #expect(failures == operations.map { _ in isInTransaction ? .late : .unknown })
                return true
            }
            let used = isInTransaction ? 2 : 4
            #expect(try await engine.execute(user(1), .consume(1)).answer?.snapshot.used == used)
            #expect(try await database.count(of: user(1), period: "trial") == used)
            #expect(try await database.psql.number("select pid \(lane)") == process)
            #expect(engine.engine.snapshot.reconnects == 0)
        }
    }
}
