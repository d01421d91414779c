import Dispatch
import Logging
import Postgres
import TestSupport
import Testing

@testable import Engine

@Suite("The session pool")
struct SessionPoolTests {
    private func pool(
        _ conninfo: String,
        sessions: Int = 1,
        capacity: Int = 256,
        readOnly: Bool = false,
        logger: Logger = .silent
    ) -> SessionPool {
        SessionPool(
            name: "test",
            EngineConfiguration(
                database: DatabaseTopology(conninfo),
                requestTimeout: waitLimit,
                connectTimeout: waitLimit
            ),
            sessions: sessions,
            capacity: capacity,
            readOnly: readOnly,
            logger: logger
        )
    }

    private func running<Value: Sendable>(
        _ pool: SessionPool,
        _ body: () async throws -> Value
    ) async throws -> Value {
        async let run: Void = pool.run()
        let result: Result<Value, any Error>
        do {
            result = .success(try await body())
        } catch {
            result = .failure(error)
        }
        pool.close()
        await run
        return try result.get()
    }

    @Sendable
    private static func backend(_ connection: DatabaseConnection) throws(PostgresError) -> Int32 {
        try connection.query("select pg_backend_pid()", deadline: .now + waitLimit).int32(0, 0)
    }

    @Test("reuses a connection for the next job")
    func reuse() async throws {
        let database = try await TestDatabase.fresh()
        let pool = pool(database.conninfo)
        try await running(pool) {
            let first = try await pool.perform(by: .now + waitLimit, Self.backend)
            #expect(try await pool.perform(by: .now + waitLimit, Self.backend) == first)
        }
    }

    @Test("repeats work on a new connection when the idle one was lost")
    func lostConnection() async throws {
        let database = try await TestDatabase.fresh()
        let proxy = try await database.proxy()
        defer { proxy.close() }
        let pool = pool(database.conninfo(through: proxy))
        try await running(pool) {
            let first = try await pool.perform(by: .now + waitLimit, Self.backend)
            proxy.arm(.request("pg_backend_pid"))
            #expect(try await pool.perform(by: .now + waitLimit, Self.backend) != first)
            #expect(proxy.cuts == 1)
        }
    }

    @Test("reports that the database is unavailable, and recovers")
    func outage() async throws {
        let database = try await TestDatabase.fresh()
        let proxy = try await database.proxy()
        defer { proxy.close() }
        let pool = pool(database.conninfo(through: proxy))
        try await running(pool) {
            proxy.refusesConnections = true
            let failure = await #expect(throws: SessionPool.Failure.self) {
                try await pool.perform(by: .now + waitLimit, Self.backend)
            }
            guard case .database(let error) = failure else {
                Issue.record("\(String(describing: failure))")
                return
            }
            #expect(error.isTransient)
            proxy.refusesConnections = false
            _ = try await pool.perform(by: .now + waitLimit, Self.backend)
        }
    }

    @Test("refuses work beyond its capacity and after its deadline")
    func limits() async throws {
        let database = try await TestDatabase.fresh()
        let pool = pool(database.conninfo, capacity: 1)
        let gate = Gate()
        try await running(pool) {
            async let first = pool.perform(by: .now + waitLimit) { connection throws(PostgresError) in
                gate.wait()
                return try Self.backend(connection)
            }
            try await waitUntil("the first job has begun") { gate.isReached }
            // Its deadline passes before a session is free.
            let second = Task { try await pool.perform(by: .now, Self.backend) }
            try await waitUntil("the second job waits") { pool.waitingCount == 1 }
            await #expect(throws: SessionPool.Failure.overloaded) {
                try await pool.perform(by: .now + waitLimit, Self.backend)
            }
            gate.open()
            _ = try await first
            await #expect(throws: SessionPool.Failure.tooLate) { try await second.value }
        }
        await #expect(throws: SessionPool.Failure.closed) {
            try await pool.perform(by: .now + waitLimit, Self.backend)
        }
    }

    @Test("drops waiting work of a cancelled task, and does not wait for work that has begun")
    func cancellation() async throws {
        let database = try await TestDatabase.fresh()
        let pool = pool(database.conninfo)
        let (gate, isBegun) = (Gate(), Flag())
        try await running(pool) {
            let first = Task {
                try await pool.perform(by: .now + waitLimit) { connection throws(PostgresError) in
                    gate.wait()
                    return try Self.backend(connection)
                }
            }
            try await waitUntil("the first job has begun") { gate.isReached }
            let second = Task {
                try await pool.perform(by: .now + waitLimit) { connection throws(PostgresError) in
                    isBegun.set()
                    return try Self.backend(connection)
                }
            }
            try await waitUntil("the second job waits") { pool.waitingCount == 1 }
            second.cancel()
            await #expect(throws: SessionPool.Failure.cancelled) { try await second.value }
            #expect(pool.waitingCount == 0, "the job is removed")
            first.cancel()
            await #expect(throws: SessionPool.Failure.cancelled) { try await first.value }
            gate.open()
            _ = try await pool.perform(by: .now + waitLimit, Self.backend)
            #expect(!isBegun.isSet)
        }
    }

    @Test("keeps its connection after a statement fails")
    func refusal() async throws {
        let database = try await TestDatabase.fresh()
        let pool = pool(database.conninfo)
        try await running(pool) {
            let first = try await pool.perform(by: .now + waitLimit, Self.backend)
            await #expect(throws: SessionPool.Failure.self) {
                try await pool.perform(by: .now + waitLimit) { connection throws(PostgresError) in
                    try connection.query("select 1 / 0", deadline: .now + waitLimit).int32(0, 0)
                }
            }
            #expect(try await pool.perform(by: .now + waitLimit, Self.backend) == first)
        }
    }

    @Test("logs a value out of range once, and other errors each time")
    func logging() async throws {
        let database = try await TestDatabase.fresh()
        let log = RecordingLog()
        let pool = pool(database.conninfo, logger: log.logger)
        try await running(pool) {
            for _ in 0..<2 {
                await #expect(throws: SessionPool.Failure.self) {
                    try await pool.perform(by: .now + waitLimit) { connection throws(PostgresError) in
                        try connection.query("select 'infinity'::timestamptz", deadline: .now + waitLimit)
                            .instantOrNil(0, 0, of: StoredColumn("headroom.tokens", "expires_at"))
                    }
                }
                await #expect(throws: SessionPool.Failure.self) {
                    try await pool.perform(by: .now + waitLimit) { connection throws(PostgresError) in
                        try connection.query("select from nowhere", deadline: .now + waitLimit).rowCount
                    }
                }
            }
        }
        #expect(log.count(of: "a value in the database is out of range") == 1)
        #expect(log.count(of: "work in a session failed") == 2)
    }

    @Test("writes nothing in a read-only session")
    func readOnly() async throws {
        let database = try await TestDatabase.fresh()
        let pool = pool(database.conninfo, readOnly: true)
        try await running(pool) {
            let failure = await #expect(throws: SessionPool.Failure.self) {
                try await pool.perform(by: .now + waitLimit) { connection throws(PostgresError) in
                    try connection.query(
                        "select public.reset_billing_period('2026-01')",
                        deadline: .now + waitLimit
                    ).rowCount
                }
            }
            guard case .database(let error) = failure else { return }
            #expect(error.sqlState == .readOnlySQLTransaction)
        }
    }
}

/// Blocks a thread of the pool until `open`.
private final class Gate: Sendable {
    private let reached = Flag()
    private let opened = DispatchSemaphore(value: 0)

    var isReached: Bool { reached.isSet }

    func open() { opened.signal() }

    func wait() {
        reached.set()
        opened.wait()
    }
}
