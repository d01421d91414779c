import Engine
import Logging
import Postgres

/// Brings the database to this binary's schema, or tells how far it is.
public struct SchemaSetup: Sendable {
    private let databaseURL: String
    private let logger: Logger
    /// A database that is started together with the service, by an orchestrator, needs a while.
    private let patience: Duration

    public init(databaseURL: String, patience: Duration = .seconds(30), logger: Logger) {
        self.databaseURL = databaseURL
        self.patience = patience
        self.logger = logger
    }

    /// - Returns: what was changed; empty when there was nothing to do.
    @discardableResult
    public func migrate() async throws -> MigrationPlan {
        let applied = try await withConnection { [logger] connection in
            try Schema.migrate(connection) { SchemaSetup.warn($0, logger) }
        }
        log(applied)
        return applied
    }

    private static func warn(_ warning: String, _ logger: Logger) {
        logger.warning("changed what was there before", metadata: ["migration.warning": "\(warning)"])
    }

    private func log(_ applied: MigrationPlan) {
        guard !applied.isEmpty else { return }
        logger.notice("schema migrated", metadata: ["migration.changes": "\(applied.summary)"])
    }

    /// Makes sure that the service can run: migrates where this login owns the schema, and else looks whether somebody
    /// who does has.
    ///
    /// - Throws: with what to run, and as whom, where something is missing.
    public func prepare() async throws {
        let preparation = try await withConnection { [logger] connection in
            try Schema.prepare(connection) { SchemaSetup.warn($0, logger) }
        }
        log(preparation.applied)
        if preparation.hasOtherWords {
            logger.warning(
                "the SQL functions say another release's sentences; have the schema's owner run headroom migrate"
            )
        }
    }

    /// What `migrate` would do.
    public func plan() async throws -> MigrationPlan {
        try await withConnection { try Schema.migrator.plan($0) }
    }

    public func status() async throws -> [MigrationStatus] {
        try await withConnection { try Schema.migrator.status($0) }
    }

    private func withConnection<Value: Sendable>(
        _ work: @escaping @Sendable (Connection) throws -> Value
    ) async throws -> Value {
        let options = ConnectionOptions.command("migrate", databaseURL, connectTimeout: .seconds(2))
        let deadline = ContinuousClock.now + patience
        var pause = Duration.milliseconds(100)
        while true {
            do {
                return try await onThread(named: "headroom.migrate") {
                    let connection = try Connection.connect(options)
                    defer { connection.close() }
                    return try work(connection)
                }
            } catch let error as PostgresError
                where error.isTransient && !error.isAboutServerIdentity && !error.isAboutSharedSession
                && .now + pause < deadline
            {
                logger.warning(
                    "the database cannot be reached yet; trying again",
                    metadata: ["database": "\(redacted(conninfo: databaseURL))", "error": "\(error)"]
                )
                try await Task.sleep(for: pause)
                pause = min(pause * 2, .seconds(2))
            }
        }
    }
}
