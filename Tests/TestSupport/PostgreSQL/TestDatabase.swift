import Engine
import Foundation
import NIOCore
import Postgres
import Usage

/// A migrated database of one test, with a session of its operator.
public struct TestDatabase: Sendable {
    public let conninfo: String
    public let psql: Session
    /// Whether Citus distributes it over workers.
    public var isDistributed = false

    /// One of `DistributedDatabases`, which no other test uses, with this policy in all sessions.
    public static func distributed(
        _ conninfo: String,
        unknownUsers policy: UnknownUsersPolicy
    ) async throws -> TestDatabase {
        let setting = try await Session.open(conninfo)
        let name = try await setting.text("current_database()") ?? ""
        try await setting.execute("alter database \(name) set headroom.unknown_users = '\(policy.rawValue)'")
        return TestDatabase(conninfo: conninfo, psql: try await Session.open(conninfo), isDistributed: true)
    }

    /// - Parameter instant: at which its clock is stopped; nil if it goes on.
    public static func fresh(at instant: Instant? = nil) async throws -> TestDatabase {
        let conninfo = try await TestServer.migratedDatabase()
        let database = TestDatabase(conninfo: conninfo, psql: try await Session.open(conninfo))
        if let instant { try await database.stopClock(at: instant) }
        return database
    }

    /// A database that is migrated instead of copied, for tests of migrations.
    public static func migrated() async throws -> TestDatabase {
        let conninfo = try await TestServer.emptyDatabase()
        let session = try await Session.open(conninfo)
        _ = try await session.run { try Schema.migrate($0) }
        return TestDatabase(conninfo: conninfo, psql: session)
    }

    /// Replaces the database's clock; `moveClock` changes its time. The function stays `stable` and inlinable.
    public func stopClock(at instant: Instant) async throws {
        if isDistributed { return try await moveClock(to: instant) }
        try await psql.execute(
            """
            create table headroom.test_clock (at timestamptz not null);
            insert into headroom.test_clock values ('epoch');
            grant select on headroom.test_clock to public;
            create or replace function headroom.now() returns timestamptz
                language sql stable parallel safe
                return (select at from headroom.test_clock);
            delete from headroom.installed_objects where object = 'function headroom.now()';
            """
        )
        try await moveClock(to: instant)
    }

    public func moveClock(to instant: Instant) async throws {
        if isDistributed { return try await replaceClock(by: instant) }
        try await psql.run { connection in
            var parameters = Parameters()
            parameters.append(timestamptz: instant.microsecondsSince1970)
            _ = try connection.query("update headroom.test_clock set at = $1", parameters, deadline: .now + waitLimit)
        }
    }

    /// On all machines. Each would need a copy of a table that the function reads.
    private func replaceClock(by instant: Instant) async throws {
        let text = "timestamptz 'epoch' + interval '\(instant.microsecondsSince1970) microseconds'"
        let literal = try await psql.text(text) ?? ""
        try await psql.execute(
            """
            create or replace function headroom.now() returns timestamptz
                language sql stable parallel safe return timestamptz '\(literal)'
            """
        )
        try await psql.execute("delete from headroom.installed_objects where object = 'function headroom.now()'")
    }

    /// Waits until so many of its sessions wait for a lock.
    public func waitUntilBlocked(_ sessions: Int) async throws {
        let blocked = "from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
        try await waitUntil("\(sessions) sessions wait for a lock") {
            try await psql.number("select count(*) \(blocked)") == sessions
        }
    }

    /// How many deadlocks it has had.
    public var deadlocks: Int? {
        get async throws {
            try await psql.number("select deadlocks from pg_stat_database where datname = current_database()")
        }
    }

    /// `message_count` of a user's row; nil without one.
    public func count(of user: UserID, period: String) async throws -> Int? {
        try await psql.number(
            "select message_count from message_usage where user_id = '\(user)' and billing_period = '\(period)'"
        )
    }
}

extension TestDatabase {
    /// The name of PostgreSQL's socket in its directory.
    private static let socketName = "/.s.PGSQL.5432"

    private var directory: Substring {
        conninfo.split(separator: " ").first { $0.hasPrefix("host=") }?.dropFirst(5) ?? ""
    }

    /// A proxy in front of the database's server, for connections with `conninfo(through:)`.
    public func proxy() async throws -> Proxy {
        let own = try await TestServer.makeDirectory()
        return try await Proxy.start(
            to: SocketAddress(unixDomainSocketPath: directory + Self.socketName),
            listeningOn: SocketAddress(unixDomainSocketPath: own + Self.socketName)
        )
    }

    public func conninfo(through proxy: Proxy) -> String {
        let own = (proxy.address.pathname ?? "").dropLast(Self.socketName.count)
        return conninfo.replacing("host=\(directory)", with: "host=\(own)")
    }
}
