import HeadroomServer
import Logging
import Postgres

extension DatabaseOptions {
    func warnOfPassword(_ logger: Logger) {
        guard let url = values[Settings.databaseURL.name], holdsPassword(conninfo: url) else { return }
        logger.warning(
            "everybody on this machine can read a password on the command line; put database-url into the environment"
        )
    }
}

extension ServeOptions {
    func warnOfSecrets(_ logger: Logger) {
        for setting in secretsOnTheCommandLine {
            logger.warning(
                "everybody on this machine can read a secret on the command line; put it into the environment or a file",
                metadata: ["setting": "\(setting.name)"]
            )
        }
    }
}

/// The database that a one-off command works on: the one that was named, or the private one, started for as long as the
/// command runs if no service has it running.
struct DatabaseAccess {
    let configuration: ServerConfiguration
    let logger: Logger

    /// Begins the log.
    ///
    /// - Parameter more: further settings that the command takes.
    init(_ database: DatabaseOptions, _ more: PruneOptions = PruneOptions()) throws {
        let reader = SettingsReader(database, more)
        configuration = try ServerConfiguration(reader)
        // Who runs a command reads what it prints; that a private PostgreSQL was started for it is no news.
        logger = LogSetup.start(level: reader.isSet(Settings.logLevel) ? configuration.logLevel : .warning)
        database.warnOfPassword(logger)
    }

    /// - Throws: the exit status, after printing the error, if the database cannot be reached; any other error of `work`.
    func run<Value>(_ work: (_ databaseURL: String) async throws -> Value) async throws -> Value {
        do {
            return try await runInDatabase(work)
        } catch let error as PrivateServerError {
            throw CommandEnd.unreachable("\(error)").exit()
        } catch let error as PostgresError where error.sqlState == nil {
            throw CommandEnd(error).exit()
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
    /// - Parameter end: how the command ends when the database says so.
    func run<Value: Sendable>(
        onThreadNamed name: String,
        endingWith end: (PostgresError) -> CommandEnd,
        _ work: @escaping @Sendable (_ databaseURL: String) throws -> Value
    ) async throws -> Value {
        try await run { url in
            do {
                return try await onThread(named: name) { try work(url) }
            } catch let error as PostgresError {
                throw end(error).exit()
            }
        }
    }
}

extension CommandEnd {
    static let schemaIsMissing = noData(
        "this database does not have this binary's schema; headroom migrate brings it there"
    )

    /// What the database said that the command has no words of its own for.
    init(_ error: PostgresError) {
        self =
            if case .server = error.kind {
                .noData("the database refused: \(error)")
            } else {
                .unreachable("the database cannot be reached: \(error); --database-url or DATABASE_URL names it")
            }
    }
}
