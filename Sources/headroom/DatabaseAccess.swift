import HeadroomServer
import Logging
import Postgres

extension DatabaseOptions {
    func warnOfPassword(_ logger: Logger) {
        guard let databaseUrl, holdsPassword(conninfo: databaseUrl) else { return }
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
    /// - Parameter settings: what the command takes besides.
    init(_ database: DatabaseOptions, _ settings: [(Setting, String?)] = []) throws {
        configuration = try ServerConfiguration(SettingsReader(database.values + settings))
        logger = LogSetup.start(level: configuration.logLevel)
        database.warnOfPassword(logger)
    }

    func run(_ work: (_ databaseURL: String) async throws -> Void) async throws {
        switch configuration.database {
        case .url(let url):
            try await work(url)
        case .privateServer(let directory):
            let server = PrivateServer(dataDirectory: directory, logger: logger)
            let running = try await server.start()
            do {
                try await work(running.conninfo)
            } catch {
                await server.stop()
                throw error
            }
            await server.stop()
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
                .unreachable("the database cannot be reached: \(error)")
            }
    }
}
