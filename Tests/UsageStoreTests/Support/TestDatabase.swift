import Postgres
import PostgresTestSupport
import Usage

@testable import UsageStore

/// A migrated database of a test's own, with a session that acts as its operator.
struct TestDatabase {
    let conninfo: String
    let psql: Session

    static func fresh() async throws -> TestDatabase {
        let conninfo = try await TestServer.freshDatabase()
        let session = try await Session.open(conninfo)
        _ = try await session.run { try Schema.migrate($0) }
        return TestDatabase(conninfo: conninfo, psql: session)
    }

    /// From now on the database's clock says what `moveClock` told it. A plain read of a table keeps the function
    /// `stable` and inlinable, as the real one is.
    func stopClock(at instant: Instant) async throws {
        try await psql.execute(
            """
            create table headroom.test_clock (at timestamptz not null);
            insert into headroom.test_clock values ('epoch');
            grant select on headroom.test_clock to public;
            create or replace function headroom.now() returns timestamptz
                language sql stable parallel safe
                return (select at from headroom.test_clock);
            """
        )
        try await moveClock(to: instant)
    }

    func moveClock(to instant: Instant) async throws {
        try await psql.run { connection in
            var parameters = Parameters()
            parameters.append(timestamptz: instant.microsecondsSince1970)
            _ = try connection.query(
                "update headroom.test_clock set at = $1",
                parameters,
                deadline: .now + .seconds(60)
            )
        }
    }

    /// `message_count` of a user's row; nil without one.
    func count(of user: UserID, period: String) async throws -> Int? {
        try await psql.number(
            "select message_count from message_usage where user_id = '\(user)' and billing_period = '\(period)'"
        )
    }
}
