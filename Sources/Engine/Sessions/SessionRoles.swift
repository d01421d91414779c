import Postgres

/// The roles in which Headroom's sessions act. Each session has a name, which pg_stat_activity shows: `headroom lane`.
extension ConnectionOptions {
    /// A session of the service, which acts as the service's role.
    static func service(
        _ name: String,
        _ database: DatabaseTopology,
        connectTimeout: Duration = .seconds(2),
        settings: [(String, String)] = []
    ) -> ConnectionOptions {
        ConnectionOptions(
            database: database,
            connectTimeout: connectTimeout,
            applicationName: "headroom \(name)",
            sessionSettings: settings,
            role: ServiceRole.name
        )
    }

    /// A session of a command. It has the rights of its login; for a superuser, the rights of the schema's owner.
    package static func command(
        _ name: String,
        _ database: DatabaseTopology,
        connectTimeout: Duration = .seconds(5)
    ) -> ConnectionOptions {
        ConnectionOptions(
            database: database,
            connectTimeout: connectTimeout,
            applicationName: "headroom \(name)",
            actsAsOwnerOf: Schema.name
        )
    }

    /// A session that migrates. It has the rights of its login.
    package static func migration(_ database: DatabaseTopology) -> ConnectionOptions {
        ConnectionOptions(database: database, connectTimeout: .seconds(2), applicationName: "headroom migrate")
    }

    /// Runs one statement in a session of its own. Blocks.
    func query(
        _ sql: String,
        _ parameters: borrowing Parameters = .init(),
        timeout: Duration = .seconds(30)
    ) throws(PostgresError) -> QueryResult {
        let connection = try DatabaseConnection.connect(self)
        defer { connection.close() }
        return try connection.query(sql, parameters, deadline: .now + timeout)
    }
}

extension DatabaseConnection {
    /// Makes commits of this session durable before they are confirmed, whatever the database's default.
    func requireDurableCommits(deadline: ContinuousClock.Instant) throws(PostgresError) {
        try execute(
            """
            select set_config('synchronous_commit', 'on', false)
            where current_setting('synchronous_commit') in ('off', 'local')
            """,
            deadline: deadline
        )
    }
}
