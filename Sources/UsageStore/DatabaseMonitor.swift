import Logging
import Postgres
import Synchronization

/// Looks after the database's own state every few seconds, on a connection and a thread of its own: no request waits for
/// it, and INFO never waits for the database.
public final class DatabaseMonitor: Sendable {
    /// What was seen at the last look; all nil while the database is away.
    public struct Facts: Sendable, Equatable {
        /// `15.14`
        public var serverVersion: String?
        /// Number of the newest migration.
        public var schemaVersion: Int?
        /// Of the slowest standby; nil where there is none.
        public var replicationLagMilliseconds: Int64?

        public init() {}
    }

    private let options: ConnectionOptions
    private let interval: Duration
    private let logger: Logger
    private let wake = WakePipe()
    private let state = Mutex((facts: Facts(), isClosed: false))

    public init(databaseURL: String, interval: Duration = .seconds(2), logger: Logger) {
        options = ConnectionOptions(
            conninfo: databaseURL,
            applicationName: "headroom monitor",
            role: ServiceRole.name
        )
        self.interval = interval
        self.logger = logger
    }

    public var facts: Facts { state.withLock { $0.facts } }

    /// Runs until `close()` was called.
    public func run() async {
        await withCheckedContinuation { continuation in
            startThread(named: "headroom.monitor") {
                self.watch()
                continuation.resume()
            }
        }
    }

    public func close() {
        state.withLock { $0.isClosed = true }
        wake.wake()
    }

    private func watch() {
        var connection: Connection?
        while !state.withLock({ $0.isClosed }) {
            do throws(PostgresError) {
                let open = if let connection { connection } else { try Connection.connect(options) }
                connection = open
                let facts = try DatabaseMonitor.look(open)
                state.withLock { $0.facts = facts }
            } catch {
                // The lanes say it when the database is away.
                logger.debug("the database's state could not be read", metadata: ["error": "\(error)"])
                // A server that answers has a version, also where it refuses to tell the rest.
                var facts = Facts()
                if let open = connection, open.isUsable {
                    facts.serverVersion = DatabaseMonitor.text(ofVersion: open.serverVersion)
                } else {
                    connection?.close()
                    connection = nil
                }
                state.withLock { $0.facts = facts }
            }
            _ = wake.sleep(orUntilReadable: -1, until: .now + interval)
        }
        connection?.close()
    }

    private static func look(_ connection: Connection) throws(PostgresError) -> Facts {
        let result = try connection.query(EmbeddedSQL.readDatabase, deadline: .now + .seconds(2))
        var facts = Facts()
        facts.serverVersion = text(ofVersion: connection.serverVersion)
        facts.schemaVersion = result.isNull(0, 0) ? nil : Int(result.int32(0, 0))
        facts.replicationLagMilliseconds = result.isNull(0, 1) ? nil : result.int64(0, 1)
        return facts
    }

    /// `15.14` of 150014.
    static func text(ofVersion number: Int) -> String {
        "\(number / 10_000).\(number % 10_000)"
    }
}
