import Logging
import Postgres
import Synchronization

/// A database session that is opened when needed, and again after a loss. Only one thread uses it.
///
/// A thread that has deadlines to meet calls `advance`, which opens the session on another thread, because connecting
/// may take as long as the connect timeout. Any other thread calls `connect`, which waits. Use one of the two.
final class ReconnectingSession<Setup: Sendable> {
    /// Prepares a new connection for use, within the connect timeout.
    typealias SetUp = @Sendable (DatabaseConnection, ContinuousClock.Instant) throws(PostgresError) -> Setup

    private var machine = ReconnectStateMachine(at: .now)
    /// The open connection; also while its statement is late.
    private var current: DatabaseConnection?
    /// Why the last session ended or could not be opened; nil while one is open, and before the first failure.
    private(set) var lastFailure: PostgresError?
    private var opening: OneShot<Opened>?
    private var generator = SystemRandomNumberGenerator()
    private var options: ConnectionOptions
    private let statements: [PreparedQuery]
    private let reportsOutages: Bool
    private let latenessMaximum: Duration?
    private let wake: WakePipe
    private let logger: Logger

    private struct Opened {
        var connection: DatabaseConnection
        var setup: Setup
    }

    /// - Parameters:
    ///   - statements: the statements to prepare on each new connection.
    ///   - wake: woken when `advance` has something to do.
    ///   - reportsOutages: whether outages are logged as such. The lanes do so; other sessions log at level debug.
    ///   - latenessMaximum: how long to wait for a statement that has exceeded its deadline, so that the session can be
    ///     kept, for an owner that calls `advance`. Nil closes the session at the deadline.
    init(
        options: ConnectionOptions,
        statements: [PreparedQuery] = [],
        wake: WakePipe,
        reportsOutages: Bool = false,
        latenessMaximum: Duration? = nil,
        logger: Logger
    ) {
        self.latenessMaximum = latenessMaximum
        self.options = options
        self.statements = statements
        self.wake = wake
        self.reportsOutages = reportsOutages
        self.logger = logger
    }

    /// The connection that can be used now; nil if there is none.
    var connection: DatabaseConnection? { isLate ? nil : current }

    /// When `advance` next has something to do; nil while the session is open, and while it is opening, which ends with
    /// a wake.
    var retryAt: ContinuousClock.Instant? {
        switch machine.state {
        case .closed(let retryAt): retryAt
        // `advance` also observes whether the database is silent.
        case .late(let until): min(until, .now + .milliseconds(100))
        case .opening, .open: nil
        }
    }

    /// Whether the session is open, but its statement has exceeded its deadline and has not ended yet.
    var isLate: Bool {
        if case .late = machine.state { true } else { false }
    }

    /// While the session is late, `advance` has something to do when this is readable; -1 otherwise.
    var lateSocket: Int32 { isLate ? current?.socket ?? -1 : -1 }

    var downSince: ContinuousClock.Instant? { machine.downSince }
    var reconnects: Int { machine.reconnects }

    /// Starts to open the session when it is time, and takes over the connection when it is ready. It never waits.
    ///
    /// - Parameter makeSetUp: called to open the session. While it is open, `advance` allocates nothing.
    /// - Returns: the result of the setup if the session was opened just now.
    func advance(_ makeSetUp: () -> SetUp) -> Setup? {
        dropIfSuperseded()
        settle()
        if machine.startOpening(at: .now) {
            let opening = OneShot<Opened>()
            self.opening = opening
            let (options, statements, wake, setUp) = (options, statements, wake, makeSetUp())
            startThread(named: "headroom.connect") {
                opening.complete(
                    Result { () throws(PostgresError) in try Self.open(options, statements, setUp) }
                )
                wake.wake()
            }
        }
        switch opening?.take() {
        case nil: return nil
        case .success(let opened): return adopt(opened)
        case .failure(let error):
            drop(error)
            return nil
        }
    }

    /// Opens the session unless it is open, whenever the last attempt was. It waits at most for the connect timeout.
    func connect(_ setUp: @escaping SetUp) throws(PostgresError) -> DatabaseConnection {
        dropIfSuperseded()
        if let connection { return connection }
        do throws(PostgresError) {
            let opened = try Self.open(options, statements, setUp)
            _ = adopt(opened)
            return opened.connection
        } catch {
            drop(error)
            throw error
        }
    }

    private func adopt(_ opened: Opened) -> Setup {
        opening = nil
        lastFailure = nil
        current = opened.connection
        opened.connection.isKeptWhenLate = latenessMaximum != nil
        if let outage = machine.opened(at: .now), reportsOutages {
            logger.notice("database is back", metadata: ["database.away": "\(outage)"])
        }
        return opened.setup
    }

    private static func open(
        _ options: ConnectionOptions,
        _ statements: [PreparedQuery],
        _ setUp: SetUp
    ) throws(PostgresError) -> Opened {
        let deadline = ContinuousClock.now + options.connectTimeout
        let connection = try DatabaseConnection.connect(options)
        do throws(PostgresError) {
            try connection.prepare(statements, deadline: deadline)
            return Opened(connection: connection, setup: try setUp(connection, deadline))
        } catch {
            let error = error.of(connection)
            connection.close()
            throw error
        }
    }

    /// Gives up a connection that broke or cannot be trusted any more. Attempts to open the next one follow at growing
    /// intervals. After `.timedOut` the connection is kept if the statement ends in time.
    func drop(_ error: PostgresError) {
        if error.kind != .timedOut || !keepLate() { lose(error) }
    }

    private func lose(_ error: PostgresError) {
        lastFailure = current.map(error.of) ?? error
        if (error.refusal ?? error.sqlState) != nil { options.database.silence.end() }
        discard()
        let failure = machine.failed(error.refusal ?? error.sqlState, at: .now, using: &generator)
        let metadata: Logger.Metadata = ["error": "\(error)"]
        guard reportsOutages else { return logger.debug("connection lost", metadata: metadata) }
        switch failure {
        case .first: logger.warning("database is away", metadata: metadata)
        // An operator has to act, for example because a role was revoked.
        case .refused: logger.warning("database refuses", metadata: metadata)
        case .repeated: logger.debug("database is still away", metadata: metadata)
        }
    }

    // MARK: Late statements

    /// Gives up the current statement and keeps its connection, unless the database answers no session: it is away
    /// then.
    ///
    /// - Returns: false if the connection must be closed.
    private func keepLate() -> Bool {
        guard !isLate else { return true }
        let silence = options.database.silence
        guard let latenessMaximum, let current, !silence.isSilent else { return false }
        guard current.giveUp() else { return current.isUsable }
        silence.doubt()
        logger.info("no answer from the database within the deadline; the session is kept for the moment")
        machine.becameLate(until: .now + latenessMaximum)
        return true
    }

    /// Uses the connection again if the late statement has ended. Loses it if that takes too long.
    private func settle() {
        guard let current, case .late(let until) = machine.state else { return }
        do throws(PostgresError) {
            guard let warnings = try current.settle() else {
                guard ContinuousClock.now >= until || options.database.silence.isSilent else { return }
                throw PostgresError(.timedOut, "no answer long after the deadline; the connection was given up")
            }
            // The server may have been superseded. A new connection finds that out.
            guard !warnings.contains(where: { $0.sqlState == .warning }) else {
                throw PostgresError(.connectionLost, "no standby has confirmed a late commit")
            }
            machine.settled()
        } catch {
            lose(error)
        }
    }

    /// Drops the connection if another session has found the successor of its server.
    private func dropIfSuperseded() {
        guard let timeline = current?.server.timeline, let successor = options.database.successor(of: timeline)
        else { return }
        drop(.superseded(timeline, by: successor))
    }

    /// Closes the connection; the session may be opened again at once.
    func close() {
        discard()
        lastFailure = nil
        machine.closed(at: .now)
    }

    /// Closes the connection, because the next one is to another server.
    func move(to options: ConnectionOptions) {
        self.options = options
        close()
    }

    /// Closes the connection and forgets an attempt that is under way, which closes its connection at its end.
    private func discard() {
        current?.close()
        current = nil
        opening = nil
    }

    /// Sleeps until woken. An open session is closed if it is idle for the whole timeout, or if the server ends it.
    func sleepIdle(timeout: Duration) {
        guard let connection else {
            close()
            _ = wake.sleep(orUntilReadable: -1, until: nil)
            return
        }
        let until = ContinuousClock.now + timeout
        // The server sends nothing on an idle connection unless it closes it.
        if wake.sleep(orUntilReadable: connection.socket, until: until) || ContinuousClock.now >= until { close() }
    }
}

extension PostgresError {
    /// Translates the refusal of a standby to write: the primary was not reached. Other errors are unchanged.
    fileprivate func of(_ connection: DatabaseConnection) -> PostgresError {
        guard kind == .server(.readOnlySQLTransaction), connection.isStandby else { return self }
        return PostgresError(.connectFailed, message, hint: hint)
    }
}

extension ReconnectingSession where Setup == Void {
    func advance() { _ = advance { { _, _ in } } }

    /// Runs a prepared statement on the open connection.
    ///
    /// - Parameter deadline: evaluated every 100 ms while the statement runs, because requests that wait for the result
    ///   may expire meanwhile. Nil means that nothing waits for it any more.
    /// - Throws: `.timedOut` at the deadline; drop the session then, as after any transient error.
    func query(
        _ statement: PreparedQuery,
        _ parameters: borrowing Parameters = .init(),
        deadline: () -> ContinuousClock.Instant?
    ) throws(PostgresError) -> QueryResult {
        guard let connection else { throw PostgresError(.connectionLost, "the connection is closed") }
        try connection.send(prepared: statement.name, parameters)
        while let limit = deadline(), ContinuousClock.now < limit {
            if let result = try connection.awaitResult(until: min(limit, .now + .milliseconds(100))) { return result }
        }
        connection.cancel()
        connection.close()
        throw PostgresError(.timedOut, "no answer from the database within the deadline")
    }
}

/// A result that one thread completes and another one takes, once.
///
/// @unchecked Sendable: the thread that completes it does not use the value afterwards, and the lock guards the result.
private final class OneShot<Value>: @unchecked Sendable {
    private let lock = Mutex<Void>(())
    private var result: Result<Value, PostgresError>?

    func complete(_ result: Result<Value, PostgresError>) {
        lock.withLock { _ in self.result = result }
    }

    func take() -> Result<Value, PostgresError>? {
        lock.withLock { _ in
            defer { result = nil }
            return result
        }
    }
}
