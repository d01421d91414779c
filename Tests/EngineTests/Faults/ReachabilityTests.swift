import Foundation
import Postgres
import TestSupport
import Testing
import Usage

@testable import Engine

/// `when-unavailable` may allow messages for the code `unreachable` alone.
@Suite("A request without a session", .serialized)
struct ReachabilityTests {
    private func code(_ operation: EngineOperation, _ engine: EngineHarness) async throws -> EngineError.Code? {
        try await engine.execute([(ada, operation)], within: .milliseconds(500))[0].failure?.code
    }

    /// Until the answer comes within the request's short limit, which a busy machine may exceed. Counts once.
    private func countOne(_ engine: EngineHarness) async throws {
        try await waitUntil("one message is counted") {
            try await engine.execute([(ada, .consume(1, key: messageKey("one")))], within: waitLimit)[0].answer != nil
        }
    }

    private func expectOneMessage(_ engine: EngineHarness) async throws {
        try await waitUntil("every lane connects") { engine.isConnected }
        var used: Int?
        try await waitUntil("the usage is read") {
            used = try await engine.execute([(ada, .usage)], within: waitLimit)[0].answer?.snapshot.used
            return used != nil
        }
        #expect(used == 1, "nothing was counted meanwhile")
    }

    @Test("fails as unreachable while nothing listens, during the first wait and when refused at once")
    func nothingListens() async throws {
        let database = try await TestDatabase.fresh()
        let proxy = try await database.proxy()
        defer { proxy.close() }
        let engine = EngineHarness(database.conninfo(through: proxy), lanes: 1, requestTimeout: .seconds(1))
        try await engine.running {
            try await countOne(engine)
            proxy.refusesConnections = true
            proxy.cutAll()
            try await waitUntil("the loss is noticed") { !engine.isConnected }
            for operation in [EngineOperation.consume(1), .consume(1, key: messageKey("a")), .check(1), .usage] {
                #expect(try await code(operation, engine) == .unreachable)
            }
            try await waitUntil("requests are refused at once") {
                engine.engine.enqueue([], lane: 0)?.1 == .unreachable
            }
            proxy.refusesConnections = false
            try await expectOneMessage(engine)
        }
    }

    @Test("fails as unavailable while a running server refuses sessions, or writes in them", arguments: [false, true])
    func refused(isReadOnly: Bool) async throws {
        let database = try await TestDatabase.fresh()
        let name = try #require(try await database.psql.text("select current_database()"))
        let admin = try await Session.open(TestServer.shared())
        let engine = EngineHarness(database.conninfo, lanes: 1, requestTimeout: .seconds(1))
        try await engine.running {
            try await countOne(engine)
            let change =
                isReadOnly
                ? "alter database \(name) set default_transaction_read_only = on"
                : "alter database \(name) with allow_connections false"
            try await admin.execute(change)
            try await admin.execute(
                """
                select pg_terminate_backend(pid) from pg_stat_activity
                where datname = '\(name)' and application_name = 'headroom lane'
                """
            )
            // Before the first new attempt, only the loss is known.
            try await waitUntil("the refusal is noticed") {
                let outcome = try await engine.execute([(ada, .consume(1))], within: .milliseconds(500))[0]
                #expect(outcome.answer == nil)
                return outcome == .failure(.sessionRefused)
            }
            for operation in [EngineOperation.consume(1), .check(1)] {
                #expect(try await code(operation, engine) == .unavailable)
            }
            let restored =
                isReadOnly
                ? "alter database \(name) reset default_transaction_read_only"
                : "alter database \(name) with allow_connections true"
            try await admin.execute(restored)
            try await expectOneMessage(engine)
        }
    }

    @Test(
        "or for a user whose row, period or table is locked, fails as unavailable",
        arguments: [
            "select from message_usage where user_id = '\(ada)' for update",
            "select reset_billing_period('trial')",
            "lock table message_usage in access exclusive mode",
        ]
    )
    func locked(statement: String) async throws {
        let database = try await TestDatabase.fresh()
        let engine = EngineHarness(database.conninfo, lanes: 1, requestTimeout: .seconds(2))
        try await engine.running {
            try await countOne(engine)
            let other = try await Session.open(database.conninfo)
            try await other.execute("begin; \(statement)")
            // The first waits for the lock, the second also behind the first.
            let outcomes = try await engine.outcomes(
                of: engine.submit([(ada, .consume(1))]) + engine.submit([(ada, .consume(1))])
            )
            for outcome in outcomes {
                let code = try #require(outcome.failure?.code)
                #expect([.unavailable, .unknown].contains(code), "\(outcome)")
            }
            try await other.execute("rollback")
        }
    }

    @Test(
        "or while a stopped server does, may be let through only if the database answers no session at all",
        arguments: [true, false]
    )
    func silent(isMonitored: Bool) async throws {
        let database = try await TestDatabase.fresh()
        let timeout = Duration.seconds(3)
        let engine = EngineHarness(database.conninfo, lanes: 1, requestTimeout: timeout, isMonitored: isMonitored)
        try await engine.running {
            try await countOne(engine)
            let lane = try #require(
                try await database.psql.number(
                    """
                    select pid from pg_stat_activity
                    where datname = current_database() and application_name = 'headroom lane'
                    """
                )
            )
            kill(pid_t(lane), SIGSTOP)
            defer { kill(pid_t(lane), SIGCONT) }
            let sent = engine.submit([(ada, .consume(1))])
            try await waitUntil("the lane has taken it") { engine.engine.snapshot.queueDepth == 0 }
            // Waits behind it.
            let waiting = engine.submit([(ada, .consume(1)), (ada, .check(1))], within: .seconds(2))
            let outcomes = try await engine.outcomes(of: sent + waiting).map(\.failure)
            #expect(outcomes == (isMonitored ? [.unknown, .late, .late] : [.unanswered, .unreachable, .unreachable]))
            #expect(outcomes.map { $0?.isOutage } == Array(repeating: !isMonitored, count: 3))
        }
    }

    @Test(
        "is told apart by why the last session ended",
        arguments: [
            (PostgresError(.connectFailed, "Connection refused"), EngineError.unreachable),
            (PostgresError(.connectFailed, "starting up", sqlState: .cannotConnectNow), .unreachable),
            (PostgresError(.connectFailed, "too many clients", refusal: .tooManyConnections), .sessionRefused),
            (PostgresError(.connectFailed, "fe_sendauth: no password supplied"), .sessionRefused),
            (PostgresError(.connectFailed, "certificate verify failed"), .sessionRefused),
            (PostgresError(.connectFailed, "permission denied", sqlState: .insufficientPrivilege), .sessionRefused),
            (PostgresError(.connectionLost, "server closed the connection unexpectedly"), .unreachable),
            (PostgresError(.connectionLost, "terminating", sqlState: .adminShutdown), .unreachable),
            (PostgresError(.connectionLost, "a pooler's error", sqlState: SQLState(rawValue: "08P01")), .unreachable),
            (PostgresError(.connectionLost, "out of memory", sqlState: SQLState(rawValue: "53200")), .sessionRefused),
            (PostgresError(.server(.readOnlySQLTransaction), "read-only"), .sessionRefused),
            (PostgresError(.server(.lockNotAvailable), "locked"), .sessionRefused),
            (PostgresError(.timedOut, "no answer"), .late),
        ]
    )
    func reasons(failure: PostgresError, expected: EngineError) {
        #expect(EngineError(withoutSession: failure) == expected)
    }
}
