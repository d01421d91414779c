import Logging
import Postgres

/// A database connection across losses, for work that leaves nothing behind when it breaks: the reader's and the
/// watcher's. A lane's, which has a receipt to keep, is `LaneLink`.
///
/// Used by one thread alone. Opening happens on another one, because it may take as long as the connect timeout, and
/// there are deadlines to keep meanwhile.
final class SessionLink {
    private enum State {
        /// Can transition to: opening.
        case closed(retryAt: ContinuousClock.Instant)
        /// Can transition to: open, closed.
        case opening(Handover<Connection>)
        /// Can transition to: closed.
        case open(Connection)
    }

    private var state = State.closed(retryAt: .now)
    private var backoff = Backoff()
    private var generator = SystemRandomNumberGenerator()
    private let options: ConnectionOptions
    private let statements: [PreparedQuery]
    private let wake: WakePipe
    private let logger: Logger
    /// Since when it cannot be opened; nil while it is open, or was not tried.
    private(set) var downSince: ContinuousClock.Instant?

    /// - Parameter statements: prepared on each new connection.
    init(options: ConnectionOptions, statements: [PreparedQuery], wake: WakePipe, logger: Logger) {
        self.options = options
        self.statements = statements
        self.wake = wake
        self.logger = logger
    }

    var connection: Connection? {
        if case .open(let connection) = state { connection } else { nil }
    }

    /// When to look again; nil while open or opening, where the wake pipe tells.
    var retryAt: ContinuousClock.Instant? {
        if case .closed(let retryAt) = state { retryAt } else { nil }
    }

    /// Starts to open it when it is time, and takes the connection when it is there. Never waits.
    func advance() {
        switch state {
        case .open:
            break
        case .closed(let retryAt):
            guard ContinuousClock.now >= retryAt else { return }
            let handover = Handover<Connection>()
            state = .opening(handover)
            let (options, statements, wake) = (options, statements, wake)
            startThread(named: "headroom.connect") {
                handover.put(Result { () throws(PostgresError) in try SessionLink.open(options, statements) })
                wake.wake()
            }
        case .opening(let handover):
            switch handover.take() {
            case nil: break
            case .success(let connection):
                state = .open(connection)
                backoff.reset()
                downSince = nil
            case .failure(let error): fail(error)
            }
        }
    }

    private static func open(
        _ options: ConnectionOptions,
        _ statements: [PreparedQuery]
    ) throws(PostgresError) -> Connection {
        let deadline = ContinuousClock.now + options.connectTimeout
        let connection = try Connection.connect(options)
        do throws(PostgresError) {
            for statement in statements {
                try connection.prepare(statement.name, statement.sql, deadline: deadline)
            }
            return connection
        } catch {
            connection.close()
            throw error
        }
    }

    /// How often a statement's deadline is looked at.
    private static let patience = Duration.milliseconds(100)

    /// Runs a prepared statement on the open connection.
    ///
    /// - Parameter deadline: asked again and again while the statement runs, because those who wait for it may give up,
    ///   or be told to, before it ends. Nil: nobody waits any more.
    /// - Throws: `.timedOut` at the deadline; drop the link then, as after any transient error.
    func query(
        _ statement: PreparedQuery,
        _ parameters: borrowing Parameters = .init(),
        deadline: () -> ContinuousClock.Instant?
    ) throws(PostgresError) -> QueryResult {
        guard let connection else { throw PostgresError(.connectionLost, "the connection is closed") }
        try connection.send(prepared: statement.name, parameters)
        while let limit = deadline(), ContinuousClock.now < limit {
            if let result = try connection.awaitResult(until: min(limit, .now + SessionLink.patience)) { return result }
        }
        connection.cancel()
        connection.close()
        throw PostgresError(.timedOut, "no answer from the database within the deadline")
    }

    /// The connection broke or cannot be trusted any more. The lanes say it aloud when the database is away.
    func drop(_ error: PostgresError) {
        connection?.close()
        fail(error)
    }

    private func fail(_ error: PostgresError) {
        logger.debug("connection lost", metadata: ["error": "\(error)"])
        downSince = downSince ?? .now
        state = .closed(retryAt: .now + backoff.pause(using: &generator))
    }

    /// Nobody needs it for now.
    func close() {
        connection?.close()
        state = .closed(retryAt: .now)
        downSince = nil
    }
}
