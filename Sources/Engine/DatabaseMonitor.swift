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
        /// Settings with which a commit that was answered may be lost, as `name=value`: PostgreSQL's own, and the
        /// default of sessions like ours. Nil while the database is away.
        public var durabilityRisks: [String]?

        public init() {}
    }

    private let options: ConnectionOptions
    private let interval: Duration
    private let tokens: any TokenKeeper
    private let logger: Logger
    private let wake = WakePipe()
    private let state = Mutex(State())

    private struct State {
        var facts = Facts()
        var isClosed = false
        var hasLooked = false
        /// Logged already.
        var reportedRisks: [String] = []
        /// Of the last look.
        var failure: PostgresError?
    }

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
    }

    public var facts: Facts { state.withLock { $0.facts } }

    /// Whether the database answered at the last look; true until the first one is over.
    public var databaseAnswers: Bool { state.withLock { !$0.hasLooked || $0.facts.serverVersion != nil } }

    /// Why it did not, for everybody to see; nil where it did.
    public var problem: String? { state.withLock { $0.failure?.summary } }

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
            connection = look(on: connection)
            rest(connection)
        }
        connection?.close()
    }

    /// One look at everything. The two statements are apart: where one is refused, or waits for a lock, the other one's
    /// facts are seen all the same.
    ///
    /// - Returns: the connection, where it can be used on.
    private func look(on idle: Connection?) -> Connection? {
        let connection: Connection
        do throws(PostgresError) {
            connection = if let idle { idle } else { try connect() }
        } catch {
            // The lanes say it when the database is away.
            logger.debug("the database cannot be asked for its state", metadata: ["error": "\(error)"])
            tokens.miss(error)
            take(Facts(), error)
            return nil
        }
        var failure: PostgresError?
        do throws(PostgresError) {
            take(try DatabaseMonitor.readFacts(connection), nil)
        } catch {
            failure = error
            logger.debug("the database's state could not be read", metadata: ["error": "\(error)"])
            // A server that answers has a version, also where it refuses to tell the rest.
            var facts = Facts()
            if connection.isUsable { facts.serverVersion = DatabaseMonitor.text(ofVersion: connection.serverVersion) }
            take(facts, error)
        }
        do throws(PostgresError) {
            if let failure, !connection.isUsable { throw failure }
            try lookAtTokens(connection)
        } catch {
            tokens.miss(error)
        }
        guard connection.isUsable else {
            connection.close()
            return nil
        }
        return connection
    }

    private func take(_ facts: Facts, _ failure: PostgresError?) {
        let (risks, isNewlyShared) = state.withLock { state in
            let isShared = failure?.isAboutSharedSession ?? false
            let wasShared = state.failure?.isAboutSharedSession ?? false
            (state.facts, state.failure, state.hasLooked) = (facts, failure, true)
            // While the database is away nothing is known of them, and what comes back with it is no news.
            guard let risks = facts.durabilityRisks, risks != state.reportedRisks else {
                return ([String](), isShared && !wasShared)
            }
            state.reportedRisks = risks
            return (risks, false)
        }
        if isNewlyShared, let failure {
            logger.error("the database's sessions are not ours alone", metadata: ["error": "\(failure)"])
        }
        guard !risks.isEmpty else { return }
        logger.warning(
            "with these settings PostgreSQL may lose messages that were answered; docs/operations.md, Durable answers",
            metadata: ["settings": "\(risks.joined(separator: " "))"]
        )
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
        tokens.take(try TokenReading(connection, deadline: .now + .seconds(2)))
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

    private static func readFacts(_ connection: Connection) throws(PostgresError) -> Facts {
        let result = try connection.query(EmbeddedSQL.readDatabase, deadline: .now + .seconds(2))
        try connection.requireProcess(try result.int32(0, 3))
        var facts = Facts()
        facts.serverVersion = text(ofVersion: connection.serverVersion)
        facts.schemaVersion = result.isNull(0, 0) ? nil : Int(try result.int32(0, 0))
        facts.replicationLagMilliseconds = result.isNull(0, 1) ? nil : try result.int64(0, 1)
        facts.durabilityRisks = try result.texts(0, 2).compactMap(\.self)
        return facts
    }

    /// `15.14` of 150014.
    static func text(ofVersion number: Int) -> String {
        "\(number / 10_000).\(number % 10_000)"
    }
}
