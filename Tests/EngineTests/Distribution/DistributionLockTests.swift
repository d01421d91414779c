import Postgres
import Synchronization
import TestSupport
import Testing

@testable import Engine

@Suite("The lock of the distribution")
struct DistributionLockTests {
    private func lock(_ session: Session) async throws -> String? {
        try await session.run { connection in
            try connection.query(EmbeddedSQL.lockDistribution, deadline: .now + waitLimit).firstRow.textOrNil("holder")
        }
    }

    @Test("is of one command at a time, and names its session to the others")
    func oneAtATime() async throws {
        let database = try await TestDatabase.fresh()
        let first = try await Session.open(database.conninfo)
        let second = try await Session.open(database.conninfo)
        let process = try #require(try await first.number("select pg_backend_pid()"))
        let login = try #require(try await first.text("select current_user"))
        #expect(try await lock(first) == nil)
        #expect(try await lock(second) == "process \(process) of \(login)")
        try await first.execute("select pg_advisory_unlock_all()")
        #expect(try await lock(second) == nil)
    }

    @Test("holds up a division, whose indexes would otherwise be in a deadlock with those of another one")
    func division() async throws {
        let database = try await TestDatabase.fresh()
        let other = try await Session.open(database.conninfo)
        #expect(try await lock(other) == nil)
        let process = try #require(try await other.number("select pg_backend_pid()"))
        let outcome = Mutex<Result<Int, any Error>?>(nil)
        async let end: Void = runThread(named: "division") {
            let result = Result { try UserDivision(DatabaseTopology(database.conninfo), into: 8).run { _ in } }
            outcome.withLock { $0 = result }
        }
        try await waitUntil("the division asks for the lock") {
            try await database.psql.number(
                """
                select count(*) from pg_stat_activity
                where query like '%headroom distribution%' and pid not in (pg_backend_pid(), \(process))
                """
            ) == 1
        }
        #expect(try await database.psql.text("select buckets::text from headroom.bucket_map") == "{0}")
        try await other.execute("select pg_advisory_unlock_all()")
        await end
        #expect(try outcome.withLock { try $0?.get() } == 8)
    }
}
