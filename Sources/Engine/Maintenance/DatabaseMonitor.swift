import Logging
import Postgres
import Synchronization

/// Reads the database's state, the tokens, and where buckets are, every few seconds, on a connection and a thread of
/// its own: no request waits for it, and INFO never waits for the database. It also listens for changes of tokens and
/// reads them at once; some poolers do not allow LISTEN, and then polling has to suffice.
public final class DatabaseMonitor: Sendable {
    /// The findings of the last poll; all nil while the database is unavailable.
    public struct Status: Sendable, Equatable {
        /// The version, such as `15.14`.
        public var serverVersion: String?
        /// The number of the newest migration.
        public var schemaVersion: Int?
        /// The address of the primary, as host:port.
        public var primary: String?
        /// The timeline of the primary; nil if the primary does not report it.
        public var timeline: UInt32?
        public var replication: Replication?
        /// The lag of the slowest standby; nil if there is none.
        public var replicationLagMilliseconds: Int64?
        /// Settings with which a confirmed commit may be lost, as `name=value`: the server's, and the defaults of
        /// sessions like ours. Nil while the database is unavailable.
        public var durabilityRisks: [String]?
        /// The number of subscriptions with access whose renewal's event is late.
        public var awaitedRenewals: Int?

        public init() {}
    }

    /// What a failover would lose.
    public enum Replication: String, Sendable, CaseIterable {
        /// A failover loses nothing: commits wait for a standby.
        case synchronous
        /// A failover loses the messages of the last moments, which no standby has yet.
        case asynchronous
        /// Nothing is counted: commits wait for a standby, and none is connected.
        case stopped
        /// There is no standby.
        case none

        /// What an operator should do while nothing is counted.
        public static let adviceWhenStopped = """
            every commit waits for a standby, and none is connected: connect one, or to go on without run "alter system \
            set synchronous_standby_names = ''" and "select pg_reload_conf()" on the primary (under Patroni: patronictl \
            edit-config, synchronous_mode_strict)
            """

        init(standbys: Int64, names: String, synchronousStandbys: Int64) {
            self =
                if names.isEmpty {
                    standbys > 0 ? .asynchronous : .none
                } else {
                    synchronousStandbys > 0 ? .synchronous : .stopped
                }
        }
    }

    private let database: DatabaseTopology
    private let options: ConnectionOptions
    private let interval: Duration
    private let renewalLeeway: Duration
    private let tokens: any TokenObserver
    private let placements: CurrentPlacements?
    private let logger: Logger
    private let wake = WakePipe()
    private let state = Mutex(State())

    private struct State {
        var status = Status()
        var isClosed = false
        var hasPolled = false
        /// The risks that are logged already.
        var reportedRisks: [String] = []
        var reportedReplication: Replication?
        /// The failure of the last poll; nil if it succeeded.
        var failure: PostgresError?
    }

    public init(
        database: DatabaseTopology,
        interval: Duration = .seconds(2),
        renewalLeeway: Duration = .zero,
        tokens: any TokenObserver,
        placements: CurrentPlacements? = nil,
        logger: Logger
    ) {
        self.database = database
        options = .service("monitor", database)
        self.interval = interval
        self.renewalLeeway = renewalLeeway
        self.tokens = tokens
        self.placements = placements
        self.logger = logger
        placements?.whenDoubted { [wake] in wake.wake() }
        database.silence.whenDoubted { [wake] in wake.wake() }
    }

    public var status: Status { state.withLock { $0.status } }

    /// Whether the database answered the last poll; true until the first poll is over.
    public var databaseAnswers: Bool { state.withLock { !$0.hasPolled || $0.status.serverVersion != nil } }

    /// Why the last poll failed, in words that hold no secret; nil if it succeeded.
    public var problem: String? { state.withLock { $0.failure?.summary } }

    /// Runs until `close()` was called.
    public func run() async {
        await runThread(named: "headroom.monitor") { self.pollUntilClosed() }
    }

    public func close() {
        state.withLock { $0.isClosed = true }
        wake.wake()
    }

    private func pollUntilClosed() {
        let session = ReconnectingSession<Void>(options: options, wake: wake, logger: logger)
        while !state.withLock({ $0.isClosed }) {
            poll(in: session)
            rest(session.connection)
        }
        session.close()
    }

    /// Reads the database's state, where the buckets are, and the tokens, with separate statements: if one fails, or
    /// waits for a lock, the others still succeed.
    private func poll(in session: ReconnectingSession<Void>) {
        let connection: DatabaseConnection
        do throws(PostgresError) {
            connection = try session.connect(listen)
        } catch {
            tokens.readFailed(error)
            update(Status(), error)
            return
        }
        var failure: PostgresError?
        do throws(PostgresError) {
            update(try readStatus(connection), nil)
        } catch {
            failure = error
            logger.debug("the database's state could not be read", metadata: ["error": "\(error)"])
            // A server that answers has a version, even if it refuses the statement.
            var status = Status()
            if connection.isUsable { status.serverVersion = DatabaseMonitor.versionText(connection.serverVersion) }
            update(status, error)
        }
        if let placements, connection.isUsable {
            do throws(PostgresError) {
                try placements.refresh(over: connection, deadline: .now + .seconds(2))
            } catch {
                failure = error
                logger.debug("the placements of buckets could not be read", metadata: ["error": "\(error)"])
            }
        }
        do throws(PostgresError) {
            if let failure, !connection.isUsable { throw failure }
            try readTokens(connection)
        } catch {
            failure = error
            tokens.readFailed(error)
        }
        if let failure, !connection.isUsable { session.drop(failure) }
    }

    private func update(_ status: Status, _ failure: PostgresError?) {
        let (risks, isNewlyShared) = state.withLock { state in
            let isShared = failure?.isAboutSharedSession ?? false
            let wasShared = state.failure?.isAboutSharedSession ?? false
            (state.status, state.failure, state.hasPolled) = (status, failure, true)
            // An outage does not change the settings. They are logged once, and not again after it.
            guard let risks = status.durabilityRisks, risks != state.reportedRisks else {
                return ([String](), isShared && !wasShared)
            }
            state.reportedRisks = risks
            return (risks, false)
        }
        if isNewlyShared, let failure {
            logger.error("the database's sessions are not ours alone", metadata: ["error": "\(failure)"])
        }
        report(status.replication)
        guard !risks.isEmpty else { return }
        logger.warning(
            "with these settings PostgreSQL may lose messages that were answered; docs/database.md, Durable answers",
            metadata: ["settings": "\(risks.joined(separator: " "))"]
        )
    }

    /// Logs once what a failover would lose, and again if that changes.
    private func report(_ replication: Replication?) {
        let isNews = state.withLock { state in
            guard let replication, replication != state.reportedReplication else { return false }
            state.reportedReplication = replication
            return true
        }
        guard isNews else { return }
        switch replication {
        case .asynchronous:
            logger.warning(
                """
                a failover loses the messages that the standby does not have yet, although they were answered; set \
                synchronous_standby_names (docs/high-availability.md)
                """
            )
        case .stopped:
            logger.error("\(Replication.adviceWhenStopped)")
        case .synchronous, .some(.none), nil: break
        }
    }

    @Sendable
    private func listen(_ connection: DatabaseConnection, _: ContinuousClock.Instant) throws(PostgresError) {
        do throws(PostgresError) {
            try connection.execute("listen headroom_tokens", deadline: .now + .seconds(2))
        } catch let error where connection.isUsable {
            logger.debug("cannot listen for changes of tokens; polling only", metadata: ["error": "\(error)"])
        }
    }

    private func readTokens(_ connection: DatabaseConnection) throws(PostgresError) {
        // Older notifications are dropped. A later one ends the rest.
        _ = try connection.takeNotifications()
        tokens.update(try TokenSnapshot(connection, deadline: .now + .seconds(2)))
        let used = tokens.takeUsedTokens()
        guard !used.isEmpty else { return }
        do throws(PostgresError) {
            try TokenSnapshot.markUsed(used, on: connection, deadline: .now + .seconds(2))
        } catch let error where connection.isUsable {
            // A standby, which is read-only, refuses this statement, and nothing depends on it.
            logger.debug("the use of tokens was not recorded", metadata: ["error": "\(error)"])
        }
    }

    /// Sleeps until the next poll is due, or until a notification that tokens have changed.
    private func rest(_ connection: DatabaseConnection?) {
        let until = ContinuousClock.now + interval
        while true {
            do throws(PostgresError) {
                // If a notification has arrived with a reply, the socket has nothing to read.
                if let connection, try connection.takeNotifications() { return }
            } catch {
                return
            }
            let isReadable = wake.sleep(orUntilReadable: connection?.socket ?? -1, until: until)
            if !isReadable { return }
        }
    }

    private func readStatus(_ connection: DatabaseConnection) throws(PostgresError) -> Status {
        let result = try connection.query(EmbeddedSQL.readDatabase, deadline: .now + .seconds(2))
        let row = result.firstRow
        try connection.requireProcess(Int32(try row.int32("process_id")))
        var status = Status()
        status.serverVersion = DatabaseMonitor.versionText(connection.serverVersion)
        status.primary = connection.serverAddress
        status.timeline = connection.server.timeline?.number
        let names = try row.text("synchronous_standby_names")
        database.waitsForStandby = !names.isEmpty
        status.replication = Replication(
            standbys: try row.int64("standbys"),
            names: names,
            synchronousStandbys: try row.int64("synchronous_standbys")
        )
        status.schemaVersion = try row.int32OrNil("schema_version")
        status.replicationLagMilliseconds = try row.int64OrNil("replication_lag_ms")
        status.durabilityRisks = try row.texts("durability_risks")
        status.awaitedRenewals = renewalLeeway > .zero ? try countAwaitedRenewals(connection) : 0
        return status
    }

    /// The awaited renewals; nil if PostgreSQL refuses the statement, as during a migration. The rest is still known
    /// then.
    private func countAwaitedRenewals(_ connection: DatabaseConnection) throws(PostgresError) -> Int? {
        var parameters = Parameters()
        parameters.append(text: "\(renewalLeeway.components.seconds)s")
        do throws(PostgresError) {
            let result = try connection.query(EmbeddedSQL.readAwaitedRenewals, parameters, deadline: .now + .seconds(2))
            return Int(try result.firstRow.int64("awaited"))
        } catch let error where connection.isUsable {
            logger.debug("the awaited renewals could not be counted", metadata: ["error": "\(error)"])
            return nil
        }
    }

    /// The version as text: `15.14` for 150014.
    static func versionText(_ number: Int) -> String {
        "\(number / 10_000).\(number % 10_000)"
    }
}
