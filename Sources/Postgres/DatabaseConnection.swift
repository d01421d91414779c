import CLibPQ
import Foundation

/// One connection to PostgreSQL, for one thread.
///
/// Methods block the thread until their deadline at most: never call them on an event loop or on the cooperative pool
/// (`onThread` runs work elsewhere). It is not Sendable, because libpq connections are not.
///
/// It executes one statement at a time: `send`, then `awaitResult` until it returns a result or throws. `query`,
/// `prepare` and `execute` do both. Parameters and results are binary throughout, except in `execute`. `sendPipeline`
/// sends several statements of a transaction in one round trip.
public final class DatabaseConnection {
    enum State {
        /// Can transition to: busy, unusable.
        case idle
        /// A statement is executing. Can transition to: idle, late, unusable.
        case busy
        /// A statement is executing, or its transaction is being ended, and nothing waits for the result any more; see
        /// `settle`. Can transition to: idle, unusable.
        case late
        /// The connection is broken, timed out or closed; only `close` makes sense. Final.
        case unusable
    }

    let handle: OpaquePointer
    let notices: NoticeCollector
    var state = State.idle
    private var isClosed = false
    /// The results of the current statements so far; see `keep`.
    private var pending: [OpaquePointer] = []
    var cancellation: Cancellation?
    /// Whether one of the current statements was a COMMIT that succeeded.
    private var hasCommitted = false
    /// Whether several statements are executing, up to a synchronization point; see `sendPipeline`.
    var isPipelined = false
    /// The server process of this session; 0 before it is connected.
    private var processID: Int32 = 0
    private let silence: DatabaseSilence?
    /// The instant since which the current statement is waited for; nil before.
    private var waitsSince: ContinuousClock.Instant?
    private var hasDoubted = false
    /// The names of the statements that `query(_:_:as:deadline:)` has prepared in this session.
    var preparedStatements: Set<String> = []
    /// Whether the connection outlives a statement that exceeds its deadline: it is late then, and not closed.
    public var isKeptWhenLate = false

    /// The state of the server when the connection was opened.
    public let server: ServerState
    /// The parameters of the server, with which another connection to it can be opened.
    private let parameters: ConnectionParameters

    private init(_ found: PrimarySearch.Found, _ silence: DatabaseSilence? = nil) {
        self.silence = silence
        handle = found.handle
        server = found.state
        parameters = found.parameters
        notices = NoticeCollector()
        notices.attach(to: handle)
    }

    deinit {
        close()
    }

    /// Connects, and applies the session settings and the role.
    ///
    /// - Throws: `.connectFailed` within `connectTimeout`, also if the server refuses a session setting or the role, or
    ///   a pooler shares the session with other clients.
    public static func connect(_ options: ConnectionOptions) throws(PostgresError) -> DatabaseConnection {
        let deadline = ContinuousClock.now + options.connectTimeout
        let connection = DatabaseConnection(try PrimarySearch(options).run(until: deadline), options.database.silence)
        try connection.begin(options, deadline: deadline)
        if let schema = options.actsAsOwnerOf { try connection.actAsOwner(of: schema, deadline: deadline) }
        return connection
    }

    /// Opens another connection to a server, with libpq's settings alone.
    static func open(
        _ server: ConnectionParameters,
        until deadline: ContinuousClock.Instant
    ) throws(PostgresError) -> DatabaseConnection {
        DatabaseConnection(try ConnectionAttempt(server).run(until: deadline))
    }

    /// Sets up a new session. It takes one round trip if the statements run in the server process that libpq connected
    /// to: the connection is direct, or passes through a plain proxy. Any other process means a pooler.
    private func begin(
        _ options: ConnectionOptions,
        deadline: ContinuousClock.Instant
    ) throws(PostgresError) {
        do throws(PostgresError) {
            processID = PQbackendPID(handle)
            let own = options.sessionSettings
            if try apply(own, role: options.role, inProcess: processID, deadline: deadline) {
                return try apply(withCitus: options.settingsWithCitus, deadline: deadline)
            }
            processID = try ExclusiveSessionCheck(self, parameters, deadline: deadline).verify()
            // The pooler's previous client may have left settings or prepared statements.
            try execute("discard all", deadline: deadline)
            let settings = parameters.sessionSettings + own
            guard try apply(settings, role: options.role, inProcess: processID, deadline: deadline) else {
                throw PostgresError.sharedSession
            }
            try apply(withCitus: options.settingsWithCitus, deadline: deadline)
        } catch {
            close()
            if error.kind == .connectFailed { throw error }
            throw PostgresError(.connectFailed, error.message, hint: error.hint, sqlState: error.sqlState)
        }
    }

    /// - Parameter process: the process that ran a statement of this session.
    /// - Throws: if that is not the session's process, because a pooler now shares the session. The connection is then
    ///   closed.
    public func requireProcess(_ process: Int32) throws(PostgresError) {
        guard process != processID else { return }
        close()
        throw PostgresError.sharedSession
    }

    // MARK: The current statement

    /// Waits for the current statement.
    ///
    /// - Returns: nil at the instant `until`; then call it again, `cancel`, or `close`. With an instant in the past, it
    ///   checks without waiting.
    /// - Throws: `.server` if the statement failed; the connection is ready for the next one. `.connectionLost` if the
    ///   outcome of the statement is unknown.
    public func awaitResult(until: ContinuousClock.Instant) throws(PostgresError) -> QueryResult? {
        try awaitResults(until: until)?.first
    }

    /// Waits as `awaitResult` does for the statements of a pipeline. It returns their results that have rows, or the
    /// last one if none has rows. The warnings are those of all statements.
    public func awaitResults(until: ContinuousClock.Instant) throws(PostgresError) -> [QueryResult]? {
        guard state == .busy || state == .late else { throw misuse("awaitResult without a current statement") }
        while true {
            let unsent = PQflush(handle)
            guard unsent >= 0 else { throw lostWhileBusy() }
            while PQisBusy(handle) == 0 {
                guard let result = PQgetResult(handle) else {
                    guard isPipelined else { return try finish() }
                    // One of several statements has ended.
                    guard PQstatus(handle) == CONNECTION_OK else { throw lostWhileBusy() }
                    continue
                }
                guard PQresultStatus(result) != PGRES_PIPELINE_SYNC else {
                    PQclear(result)
                    isPipelined = false
                    guard PQexitPipelineMode(handle) == 1 else { throw lost() }
                    return try finish()
                }
                try keep(result)
            }
            // It waits only here, because the bytes that were already read may complete the statement.
            let events: SocketWait.Events = unsent == 0 ? .read : [.read, .write]
            guard wait(for: events, until: until) else { return nil }
            guard PQconsumeInput(handle) == 1 else { throw lostWhileBusy() }
            silence?.end()
        }
    }

    /// Waits for the socket. After a while it doubts the database, once for each statement.
    ///
    /// - Returns: false at the instant `until`.
    private func wait(for events: SocketWait.Events, until: ContinuousClock.Instant) -> Bool {
        guard let silence, !hasDoubted else { return SocketWait.wait(socket, for: events, until: until) }
        let since = waitsSince ?? .now
        waitsSince = since
        let end = since + DatabaseSilence.patience
        if SocketWait.wait(socket, for: events, until: min(until, end)) { return true }
        guard end < until else { return false }
        hasDoubted = true
        silence.doubt()
        return SocketWait.wait(socket, for: events, until: until)
    }

    /// Requests the cancellation of the current statement without waiting, and without a promise that it works.
    /// `awaitResult` then throws `.server(.queryCanceled)`, or returns the result if the statement was faster.
    public func cancel() {
        guard state == .busy, cancellation == nil else { return }
        cancellation = Cancellation.start(handle)
    }

    // MARK: State

    /// Whether the connection can execute statements: it has not broken, timed out or been closed, and its statement is
    /// not late.
    public var isUsable: Bool { state == .idle || state == .busy }

    /// The server's version in the form of PG_VERSION_NUM: 150018 is 15.18.
    public var serverVersion: Int { isClosed ? 0 : Int(PQserverVersion(handle)) }

    /// The server's host and port as messages name them.
    public var serverName: String { parameters.serverName }

    /// The server as host:port.
    public var serverAddress: String { parameters.serverAddress }

    /// The address at which the server listens, as others reach it, too; nil for a Unix socket.
    public var address: ServerAddress? { parameters.address }

    /// Whether the server is a standby, which takes no writes. PostgreSQL 14 and later report it.
    public var isStandby: Bool {
        !isClosed && PQparameterStatus(handle, "in_hot_standby").map { String(cString: $0) == "on" } ?? false
    }

    /// The descriptor for polling beside others; -1 if closed. Read from it only through this class.
    public var socket: Int32 { isClosed ? -1 : PQsocket(handle) }

    /// Whether a transaction is open, failed or not.
    var isInTransaction: Bool {
        guard !isClosed else { return false }
        let status = PQtransactionStatus(handle)
        return status == PQTRANS_INTRANS || status == PQTRANS_INERROR
    }

    /// Ends the session. It may be called again. The server continues a current statement until it detects the end.
    public func close() {
        guard !isClosed else { return }
        // PQfinish sends a message first, and must not wait for that on a stuck connection.
        if state != .idle, PQsocket(handle) >= 0 { shutdown(PQsocket(handle), Int32(SHUT_RDWR)) }
        state = .unusable
        isClosed = true
        for result in pending { PQclear(result) }
        pending = []
        PQfinish(handle)
    }

    func begin() throws(PostgresError) {
        switch state {
        case .idle:
            notices.clear()
            hasCommitted = false
            (waitsSince, hasDoubted) = (nil, false)
        case .busy: throw misuse("another statement is executing; await its result first")
        case .late: throw PostgresError(.timedOut, "the last statement has not ended yet")
        case .unusable: throw PostgresError(.connectionLost, "the connection is closed; connect again")
        }
    }

    func sent(_ succeeded: Int32) throws(PostgresError) {
        if succeeded == 1 {
            state = .busy
        } else if PQstatus(handle) == CONNECTION_BAD {
            throw lost()
        } else {
            throw misuse(PostgresError.text(PQerrorMessage(handle)))
        }
    }

    /// Keeps the first error among the results of several statements. Without an error it keeps the last result, and in
    /// a pipeline all with rows: `BEGIN` and `COMMIT` have none.
    private func keep(_ result: OpaquePointer) throws(PostgresError) {
        switch PQresultStatus(result) {
        case PGRES_COPY_IN, PGRES_COPY_OUT, PGRES_COPY_BOTH:
            PQclear(result)
            close()
            throw misuse("COPY to or from the client is not supported")
        default: break
        }
        let hasRows = PQresultStatus(result) == PGRES_TUPLES_OK
        if !hasRows, strcmp(PQcmdStatus(result), "COMMIT") == 0 { hasCommitted = true }
        if let earlier = pending.last {
            let earlierHasRows = isPipelined && PQresultStatus(earlier) == PGRES_TUPLES_OK
            if DatabaseConnection.isError(earlier)
                || (earlierHasRows && !hasRows && !DatabaseConnection.isError(result))
            {
                PQclear(result)
                return
            }
            if !earlierHasRows || !hasRows {
                for earlier in pending { PQclear(earlier) }
                pending = []
            }
        }
        pending.append(result)
    }

    /// Ends the statement after all of its results have arrived.
    private func finish() throws(PostgresError) -> [QueryResult] {
        guard let result = pending.last else { throw lost() }
        let results = pending
        pending = []
        let isLate = state == .late
        state = PQstatus(handle) != CONNECTION_OK ? .unusable : isLate ? .late : .idle
        if let cancellation, !isLate {
            self.cancellation = nil
            // A request that is still being sent could cancel the next statement.
            if !cancellation.hasEnded(within: .seconds(1)) { close() }
        }
        // After this warning, it is unknown whether the transaction was committed, whatever the server says.
        if let warning = notices.warnings.first(where: \.isAboutLostCommit) {
            for result in results { PQclear(result) }
            close()
            throw PostgresError(.connectionLost, warning.message)
        }
        guard DatabaseConnection.isError(result) else {
            return results.map { QueryResult($0, warnings: notices.warnings) }
        }
        defer { PQclear(result) }
        let (error, isFatal) = PostgresError.from(result: result)
        // statement_timeout may end the statement after its transaction was committed. The error seems to say that it
        // was rolled back.
        if isFatal || hasCommitted { close() }
        throw hasCommitted ? PostgresError(.connectionLost, error.message) : error
    }

    private static func isError(_ result: OpaquePointer) -> Bool {
        switch PQresultStatus(result) {
        case PGRES_FATAL_ERROR, PGRES_BAD_RESPONSE, PGRES_NONFATAL_ERROR: true
        default: false
        }
    }

    /// Returns the error of a lost connection. The server may have sent one before it closed the connection, which is
    /// still in libpq's buffer.
    private func lostWhileBusy() -> PostgresError {
        let message = PostgresError.text(PQerrorMessage(handle))
        while PQstatus(handle) == CONNECTION_BAD, let result = PQgetResult(handle) {
            guard pending.isEmpty, DatabaseConnection.isError(result) else {
                PQclear(result)
                continue
            }
            pending = [result]
        }
        defer { close() }
        if let last = pending.last, DatabaseConnection.isError(last) {
            let error = PostgresError.from(result: last).error
            return PostgresError(.connectionLost, error.message, hint: error.hint, sqlState: error.sqlState)
        }
        return PostgresError(.connectionLost, message)
    }

    private func lost() -> PostgresError {
        let message = PostgresError.text(PQerrorMessage(handle))
        close()
        return PostgresError(.connectionLost, message)
    }

    func misuse(_ message: String) -> PostgresError {
        PostgresError(.misuse, message)
    }
}
