import Logging
import Postgres
import ServiceCore

extension DatabaseOptions {
    func warnAboutPassword(_ logger: Logger) {
        let name = Settings.table.database.url.definition.name
        guard let url = values[name], DatabaseTopology(url).holdsPassword else { return }
        logger.warning(
            "every user of this machine can read a password on the command line; set database-url in the environment"
        )
    }
}

extension SettingsOptions {
    /// Warns of each setting that holds a secret and was given as a flag.
    func warnAboutSecrets(_ logger: Logger) {
        for setting in Self.settings where setting.isSecret && values[setting.name] != nil {
            logger.warning(
                "every user of this machine can read a secret on the command line; set it in the environment or a file",
                metadata: ["setting": "\(setting.name)"]
            )
        }
    }
}

/// Gives a one-off command its database. If no URL is configured, that is the private PostgreSQL, which is started for
/// the command, unless a service has already started it.
struct DatabaseAccess {
    let configuration: ServerConfiguration
    let logger: Logger

    /// Reads the settings and sets up logging.
    ///
    /// - Parameter pruneOptions: further settings, of `headroom prune` alone.
    init(_ database: DatabaseOptions, _ pruneOptions: PruneOptions = PruneOptions()) throws {
        configuration = try ServerConfiguration(SettingsReader([database, pruneOptions]))
        let settings = configuration.settings.database
        // People read the output of a command, and the start of a private PostgreSQL does not interest them.
        logger = LogSetup.start(level: settings.isSet(\.logLevel) ? settings.logLevel : .warning)
        database.warnAboutPassword(logger)
    }

    /// Runs `work` with the URL of the database.
    ///
    /// - Throws: the exit status if the database cannot be reached, after printing why; else the error of `work`.
    func run<Value>(_ work: (_ database: DatabaseTopology) async throws -> Value) async throws -> Value {
        do {
            return try await runInDatabase(work)
        } catch let error as PrivateServerError {
            throw CommandFailure.databaseUnreachable("\(error)").exitCodeAfterPrinting()
        } catch let error as PostgresError where error.sqlState == nil {
            throw CommandFailure(error).exitCodeAfterPrinting()
        }
    }

    private func runInDatabase<Value>(
        _ work: (_ database: DatabaseTopology) async throws -> Value
    ) async throws -> Value {
        switch configuration.database {
        case .url(let url):
            return try await work(DatabaseTopology(url.text))
        case .privateServer(let directory):
            let server = PrivateServer(dataDirectory: directory, createsCluster: false, logger: logger)
            let running = try await server.start()
            do {
                let value = try await work(DatabaseTopology(running.conninfo))
                await server.stop()
                return value
            } catch {
                await server.stop()
                throw error
            }
        }
    }

    /// Runs `work`, which may block, with the URL of the database on a thread of its own.
    ///
    /// - Parameter failure: translates an error of the database into the command's failure.
    func run<Value: Sendable>(
        onThreadNamed name: String,
        failingWith failure: (PostgresError) -> CommandFailure,
        _ work: @escaping @Sendable (_ database: DatabaseTopology) throws -> Value
    ) async throws -> Value {
        try await run { database in
            do {
                return try await onThread(named: name) { try work(database) }
            } catch let error as PostgresError {
                throw failure(error).exitCodeAfterPrinting()
            }
        }
    }
}

extension CommandFailure {
    /// The failure for a database error that the command does not explain itself.
    init(_ error: PostgresError) {
        switch error.kind {
        case .server(.undefinedTable), .server(.undefinedColumn), .server(.undefinedFunction),
            .server(.invalidSchemaName):
            self = .schemaMissing("this database does not have this binary's schema; run headroom migrate")
        case .server(.invalidParameterValue):
            self = .invalidArguments(error.message + (error.hint.map { " (\($0))" } ?? ""))
        case .server:
            self = .databaseRefused("the database refused: \(error)")
        default:
            self = .databaseUnreachable(
                "the database cannot be reached: \(error); --database-url or DATABASE_URL names it"
            )
        }
    }
}
