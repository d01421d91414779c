import HeadroomServer
import Logging
import Postgres

extension DatabaseOptions {
    func warnAboutPassword(_ logger: Logger) {
        guard let url = values[Settings.databaseURL.name], holdsPassword(conninfo: url) else { return }
        logger.warning(
            "every user of this machine can read a password on the command line; set database-url in the environment"
        )
    }
}

extension ServeOptions {
    func warnAboutSecrets(_ logger: Logger) {
        for setting in secretsOnTheCommandLine {
            logger.warning(
                "every user of this machine can read a secret on the command line; set it in the environment or a file",
                metadata: ["setting": "\(setting.name)"]
            )
        }
    }
}

/// The database of a one-off command: the configured one, or the private one, which is started for the command unless a
/// service already runs it.
struct DatabaseAccess {
    let configuration: ServerConfiguration
    let logger: Logger

    /// Starts the log.
    ///
    /// - Parameter more: further settings that the command takes.
    init(_ database: DatabaseOptions, _ more: PruneOptions = PruneOptions()) throws {
        let reader = SettingsReader(database, more)
        configuration = try ServerConfiguration(reader)
        // The output of a command is read by people: the start of a private PostgreSQL is not worth a line.
        logger = LogSetup.start(level: reader.isSet(Settings.logLevel) ? configuration.logLevel : .warning)
        database.warnAboutPassword(logger)
    }

    /// - Throws: the exit status, after printing the error, if the database cannot be reached; any other error of `work`.
    func run<Value>(_ work: (_ databaseURL: String) async throws -> Value) async throws -> Value {
        do {
            return try await runInDatabase(work)
        } catch let error as PrivateServerError {
            throw CommandFailure.unreachable("\(error)").exit()
        } catch let error as PostgresError where error.sqlState == nil {
            throw CommandFailure(error).exit()
        }
    }

    private func runInDatabase<Value>(_ work: (_ databaseURL: String) async throws -> Value) async throws -> Value {
        switch configuration.database {
        case .url(let url):
            return try await work(url)
        case .privateServer(let directory):
            let server = PrivateServer(dataDirectory: directory, createsCluster: false, logger: logger)
            let running = try await server.start()
            do {
                let value = try await work(running.conninfo)
                await server.stop()
                return value
            } catch {
                await server.stop()
                throw error
            }
        }
    }

    /// The same for work that blocks, on a thread of its own.
    ///
    /// - Parameter failure: the failure of the command for an error of the database.
    func run<Value: Sendable>(
        onThreadNamed name: String,
        failingWith failure: (PostgresError) -> CommandFailure,
        _ work: @escaping @Sendable (_ databaseURL: String) throws -> Value
    ) async throws -> Value {
        try await run { url in
            do {
                return try await onThread(named: name) { try work(url) }
            } catch let error as PostgresError {
                throw failure(error).exit()
            }
        }
    }
}

extension CommandFailure {
    /// An error of the database that the command has no text of its own for.
    init(_ error: PostgresError) {
        switch error.kind {
        case .server(.undefinedTable), .server(.undefinedColumn), .server(.undefinedFunction),
            .server(.invalidSchemaName):
            self = .noData("this database does not have this binary's schema; run headroom migrate")
        case .server:
            self = .noData("the database refused: \(error)")
        default:
            self = .unreachable("the database cannot be reached: \(error); --database-url or DATABASE_URL names it")
        }
    }
}
