import TestSupport
import Testing

@testable import Engine

@Suite("The script that creates the roles")
struct RolesScriptTests {
    @Test("can be repeated, also concurrently in several databases of a cluster")
    func again() async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<4 {
                group.addTask {
                    let session = try await Session.open(try await TestServer.emptyDatabase())
                    for _ in 0..<2 { try await session.execute(Schema.rolesScript) }
                    let count = try await session.number(
                        """
                        select count(*) from pg_roles where rolname in (
                            'headroom_owner', 'headroom_service', 'headroom_operator', 'headroom_dashboard',
                            'headroom_user'
                        )
                        """
                    )
                    #expect(count == 5)
                }
            }
            try await group.waitForAll()
        }
    }
}
