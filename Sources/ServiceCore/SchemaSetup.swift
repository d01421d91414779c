import Engine
import Logging
import Postgres
import Usage

/// Migrates the database to this binary's schema, or reports its state.
public struct SchemaSetup: Sendable {
    private let database: DatabaseTopology
    private let logger: Logger
    /// How long to retry while the database cannot be reached: an orchestrator may start both at the same time.
    private let retryLimit: Duration

    public init(database: DatabaseTopology, retryLimit: Duration = .seconds(30), logger: Logger) {
        self.database = database
        self.retryLimit = retryLimit
        self.logger = logger
    }

    /// - Parameter whenBegun: called when a file begins to be applied.
    /// - Returns: the changes that were made; empty if the schema was current.
    @discardableResult
    public func migrate(
        whenBegun: @escaping @Sendable (_ file: String) -> Void = { _ in }
    ) async throws -> MigrationPlan {
        let applied = try await withConnection { [logger] connection in
            try Schema.migrate(connection, whenBegun: whenBegun) { SchemaSetup.warn($0, logger) }
        }
        log(applied)
        return applied
    }

    private static func warn(_ warning: String, _ logger: Logger) {
        logger.warning("an existing object was changed", metadata: ["migration.warning": "\(warning)"])
    }

    private func log(_ applied: MigrationPlan) {
        guard !applied.isEmpty else { return }
        logger.notice("schema migrated", metadata: ["migration.changes": "\(applied.summary)"])
    }

    /// Makes sure that the service can run: migrates if this login may, otherwise checks that the schema is current and
    /// as it was installed.
    ///
    /// - Parameter isPrivate: whether the server is the service's own, where its login is a superuser.
    /// - Throws: if something is missing or altered, with the command to run and the role to run it as.
    public func prepare(isPrivate: Bool = false) async throws {
        let preparation = try await withConnection { [logger] connection in
            try Schema.prepare(connection) { SchemaSetup.warn($0, logger) }
        }
        log(preparation.applied)
        if preparation.mayMigrate, !isPrivate {
            logger.notice(
                """
                the service's login may replace Headroom's functions and remove the audit log's triggers; a login that is \
                granted only headroom_service may not
                """
            )
        }
        if preparation.hasChangedWords {
            logger.warning(
                "headroom.words has another release's sentences; run headroom migrate with a login that may migrate"
            )
        }
    }

    /// Where the buckets of a distributed database are.
    public func placements() async throws -> CurrentPlacements {
        try await retrying { [database] in
            let placements = CurrentPlacements(database)
            try placements.load()
            return placements
        }
    }

    /// Stores the namespace of users' names in the database, for `headroom.user_id`.
    ///
    /// - Throws: if the database has another one, in which the names stand for other users.
    public func claim(_ namespace: UserNamespace) async throws {
        try await retrying { [database] in try namespace.claim(database: database) }
    }

    /// The namespace of users' names that another instance has stored; nil if none has.
    public func userNamespace() async throws -> UserNamespace? {
        try await retrying { [database] in try UserNamespace.stored(database: database) }
    }

    /// The changes that `migrate` would make.
    public func plan() async throws -> MigrationPlan {
        try await withConnection { try Schema.migrator.plan($0) }
    }

    /// The objects that differ from what was installed.
    public func alteredObjects() async throws -> [AlteredObject] {
        try await withConnection { try Schema.migrator.alteredObjects($0) }
    }

    /// The roles that were created after the last migration, and lack their rights.
    public func newRoles() async throws -> [String] {
        try await withConnection { try Schema.migrator.newRoles($0) }
    }

    public func status() async throws -> [MigrationStatus] {
        try await withConnection { try Schema.migrator.status($0) }
    }

    private func withConnection<Value: Sendable>(
        _ work: @escaping @Sendable (DatabaseConnection) throws -> Value
    ) async throws -> Value {
        let options = ConnectionOptions.migration(database)
        return try await retrying {
            let connection = try DatabaseConnection.connect(options)
            defer { connection.close() }
            return try work(connection)
        }
    }

    /// - Parameter work: blocks.
    private func retrying<Value: Sendable>(_ work: @escaping @Sendable () throws -> Value) async throws -> Value {
        let deadline = ContinuousClock.now + retryLimit
        var pause = Duration.milliseconds(100)
        while true {
            do {
                return try await onThread(named: "headroom.migrate", work)
            } catch let error as PostgresError
                where error.isTransient && !error.isAboutServerIdentity && !error.isAboutSharedSession
                && .now + pause < deadline
            {
                logger.warning(
                    "the database cannot be reached yet; retrying",
                    metadata: ["database": "\(database)", "error": "\(error)"]
                )
                try await Task.sleep(for: pause)
                pause = min(pause * 2, .seconds(2))
            }
        }
    }
}
