import Postgres
import TestSupport

@testable import Engine

extension Session {
    /// A session with a lane's settings and role, in which a statement is prepared.
    static func lane(_ database: TestDatabase, preparing name: String, _ sql: String) async throws -> Session {
        let session = try await Session.open(
            .service(
                "lane",
                DatabaseTopology(database.conninfo),
                connectTimeout: waitLimit,
                settings: LaneSettings.all(requestTimeout: waitLimit * 4)
            )
        )
        try await session.run { connection in try connection.prepare(name, sql, deadline: .now + waitLimit) }
        return session
    }
}
