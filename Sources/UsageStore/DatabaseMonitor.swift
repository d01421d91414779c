import Logging
import Postgres
import Synchronization

/// Looks after the database's own state every few seconds, on a connection and a thread of its own: no request waits for
/// it, and INFO never waits for the database. The tokens it looks at too, and at once when the database says that they
/// changed; where nobody can listen, behind some poolers, looking every few seconds has to do.
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
    private let tokens: any TokenKeeper
    private let logger: Logger
    private let invalidValues: InvalidValueLog
    private let wake = WakePipe()
    private let state = Mutex((facts: Facts(), isClosed: false, hasLooked: false))

    public init(
        databaseURL: String,
        interval: Duration = .seconds(2),
        tokens: any TokenKeeper,
        logger: Logger
    ) {
        options = .service("monitor", databaseURL)
        self.interval = interval
        self.tokens = tokens
        self.logger = logger
        invalidValues = InvalidValueLog(logger)
    }

    public var facts: Facts { state.withLock { $0.facts } }

    /// Whether the database answered at the last look; true until the first one is over.
    public var databaseAnswers: Bool { state.withLock { !$0.hasLooked || $0.facts.serverVersion != nil } }

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
        var tokensAreUnread = false
        while !state.withLock({ $0.isClosed }) {
            var tokensWereRead = false
            do throws(PostgresError) {
                let open = if let connection { connection } else { try connect() }
                connection = open
                try lookAtTokens(open)
                tokensWereRead = true
                if tokensAreUnread { logger.notice("tokens are read again") }
                tokensAreUnread = false
                let facts = try DatabaseMonitor.look(open)
                take(facts)
            } catch {
                // The lanes say it when the database is away.
                logger.debug("the database's state could not be read", metadata: ["error": "\(error)"])
                tokens.takeTime()
                if !tokensWereRead, !tokensAreUnread, DatabaseMonitor.isOfADatabaseThatIsThere(error) {
                    tokensAreUnread = true
                    logger.warning(
                        "tokens cannot be read; those that are known stay, and revoking one is not noticed",
                        metadata: ["error": "\(error)"]
                    )
                }
                // A server that answers has a version, also where it refuses to tell the rest.
                var facts = Facts()
                if let open = connection, open.isUsable {
                    facts.serverVersion = DatabaseMonitor.text(ofVersion: open.serverVersion)
                } else {
                    connection?.close()
                    connection = nil
                }
                take(facts)
            }
            rest(connection)
        }
        connection?.close()
    }

    private func take(_ facts: Facts) {
        state.withLock {
            $0.facts = facts
            $0.hasLooked = true
        }
    }

    private func connect() throws(PostgresError) -> Connection {
        let connection = try Connection.connect(options)
        do throws(PostgresError) {
            try connection.execute("listen headroom_tokens", deadline: .now + .seconds(2))
        } catch let error where connection.isUsable {
            logger.debug("tokens are looked at, not listened for", metadata: ["error": "\(error)"])
        }
        return connection
    }

    private func lookAtTokens(_ connection: Connection) throws(PostgresError) {
        // What is said after this is found while resting.
        _ = try connection.takeNotifications()
        let reading = try TokenReading(connection, deadline: .now + .seconds(2))
        if reading.outOfRange > 0 {
            invalidValues.record(StoredColumn("headroom.tokens", "expires_at").invalidInstant)
        }
        tokens.take(reading)
        let used = tokens.takeUsed()
        guard !used.isEmpty else { return }
        do throws(PostgresError) {
            try TokenReading.markUsed(used, on: connection, deadline: .now + .seconds(2))
        } catch let error where connection.isUsable {
            // A standby takes no writes; nothing depends on this one.
            logger.debug("the use of tokens was not noted", metadata: ["error": "\(error)"])
        }
    }

    /// Until it is time for the next look, or the database says that tokens have changed.
    private func rest(_ connection: Connection?) {
        let until = ContinuousClock.now + interval
        while true {
            do throws(PostgresError) {
                // It may have come with an answer: then nothing is left to read on the socket.
                if let connection, try connection.takeNotifications() { return }
            } catch {
                return
            }
            let isReadable = wake.sleep(orUntilReadable: connection?.socket ?? -1, until: until)
            if !isReadable { return }
        }
    }

    /// The lanes do not tell of it, and requests go on being answered.
    private static func isOfADatabaseThatIsThere(_ error: PostgresError) -> Bool {
        switch error.kind {
        case .server, .timedOut: true
        case .connectFailed, .connectionLost, .misuse: false
        }
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
