import Postgres
import TestSupport
import Testing

@testable import Engine

@Suite("The lock of the servers")
struct ServersLockTests {
    private func lock(_ session: Session) async throws -> String? {
        try await session.run { connection in
            try connection.query(EmbeddedSQL.lockServers, deadline: .now + waitLimit).firstRow.textOrNil("holder")
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
}
