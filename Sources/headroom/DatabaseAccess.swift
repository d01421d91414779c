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

/// The database that a one-off command works on: the one that was named, or the private one, started for as long as the
/// command runs if no service has it running.
struct DatabaseAccess {
    private let configuration: ServerConfiguration
    private let logger: Logger

    init(_ configuration: ServerConfiguration, logger: Logger) {
        self.configuration = configuration
        self.logger = logger
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
