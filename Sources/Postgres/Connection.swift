import CLibPQ
import Foundation

/// One connection to PostgreSQL, for one thread.
///
/// Every method that waits blocks its thread, until its deadline at most: never call them on an event loop or on the
/// cooperative pool (`onThread` runs a piece of work elsewhere). Not Sendable, because libpq connections are not.
///
/// One statement at a time: `send`, then `awaitResult` until it returns a result or throws. `query`, `prepare` and
/// `execute` do both. Parameters and results are binary throughout, except in `execute`. Only the first and the last
/// statement of a transaction may be sent together with its `BEGIN` or `COMMIT`.
public final class Connection {
    enum State {
        /// Can transition to: busy, unusable.
        case idle
        /// A statement is under way. Can transition to: idle, unusable.
        case busy
        /// Broken, timed out or closed; only `close` makes sense. Final.
        case unusable
    }

    let handle: OpaquePointer
    private let notices: NoticeCollector
    private(set) var state = State.idle
    private var isClosed = false
    /// What the statement under way has returned so far; see `keep`.
    private var pending: OpaquePointer?
    private var cancellation: Cancellation?
    /// Several statements are under way, up to a synchronization point, as `query(_:_:as:deadline:)` sends them.
    var isPipelined = false
    /// The server process that serves this session, from `connect` on.
    private var processID: Int32 = 0
    /// Names that `query(_:_:as:deadline:)` has prepared in this session.
    var preparedStatements: Set<String> = []

    init(handle: OpaquePointer) {
        self.handle = handle
        notices = NoticeCollector()
        notices.attach(to: handle)
    }

    deinit {
        close()
    }

    /// Connects, applies the session settings and takes the role.
    ///
    /// - Throws: `.connectFailed` within `connectTimeout`, also where the server refuses a session setting or the role,
    ///   and where a pooler gives the session to other clients, too: nothing was set then.
    public static func connect(_ options: ConnectionOptions) throws(PostgresError) -> Connection {
        let deadline = ContinuousClock.now + options.connectTimeout
        var connecting = try Connecting(options)
        let connection = Connection(handle: try connecting.run())
        guard PQsetnonblocking(connection.handle, 1) == 0 else { throw connection.lost() }
        try connection.begin(options, connecting, deadline: deadline)
        if let schema = options.actsAsOwnerOf { try connection.actAsOwner(of: schema, deadline: deadline) }
        return connection
    }

    /// Sets up a new session. One round trip if the statements run in the server process that libpq connected to: the
    /// connection is direct, or passes through a plain proxy. Any other process means a pooler.
    private func begin(
        _ options: ConnectionOptions,
        _ connecting: Connecting,
        deadline: ContinuousClock.Instant
    ) throws(PostgresError) {
        do throws(PostgresError) {
            processID = PQbackendPID(handle)
            let own = options.sessionSettings
            if try apply(own, role: options.role, inProcess: processID, deadline: deadline) { return }
            processID = try SessionOwnership(self, connecting, deadline: deadline).prove()
            // The pooler's previous client may have left settings or prepared statements.
            try execute("discard all", deadline: deadline)
            let settings = connecting.sessionSettings + own
            guard try apply(settings, role: options.role, inProcess: processID, deadline: deadline) else {
                throw PostgresError.sharedSession
            }
        } catch {
            close()
            if error.kind == .connectFailed { throw error }
            throw PostgresError(.connectFailed, error.message, hint: error.hint, sqlState: error.sqlState)
        }
    }

    /// - Parameter process: where a statement of this session ran.
    /// - Throws: where that was another process than the session's: a pooler shares it by now. The connection is closed
    ///   then.
    public func requireProcess(_ process: Int32) throws(PostgresError) {
        guard process != processID else { return }
        close()
        throw PostgresError.sharedSession
    }

    // MARK: The statement under way

    /// Waits for the statement under way.
    ///
    /// - Returns: nil when `until` came first; call it again, or `cancel`, or give up with `close`. An instant in the
    ///   past looks without waiting.
    /// - Throws: `.server` once the connection is ready for the next statement again. `.connectionLost`: what became
    ///   of the statement is unknown.
    public func awaitResult(until: ContinuousClock.Instant) throws(PostgresError) -> QueryResult? {
        guard state == .busy else { throw misuse("awaitResult without a statement under way") }
        while true {
            let unsent = PQflush(handle)
            guard unsent >= 0 else { throw lostWhileBusy() }
            while PQisBusy(handle) == 0 {
                guard let result = PQgetResult(handle) else {
                    guard isPipelined else { return try finish() }
                    // One statement of several is over.
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
            // What was read already may end the statement without another byte, so wait only here.
            let events: SocketWait.Events = unsent == 0 ? .read : [.read, .write]
            guard SocketWait.wait(socket, for: events, until: until) else { return nil }
            guard PQconsumeInput(handle) == 1 else { throw lostWhileBusy() }
        }
    }

    /// Asks the server to cancel the statement under way; best effort. Returns at once. The statement ends as usual in
    /// `awaitResult`, with `.server(.queryCanceled)` or, if it was faster, with its result.
    public func cancel() {
        guard state == .busy, cancellation == nil else { return }
        cancellation = Cancellation.start(handle)
    }

    // MARK: State

    /// False once the connection broke, timed out or was closed: connect anew.
    public var isUsable: Bool { state != .unusable }

    /// The form of PG_VERSION_NUM: 150018 is 15.18.
    public var serverVersion: Int { isClosed ? 0 : Int(PQserverVersion(handle)) }

    /// For polling beside other descriptors; -1 when closed. Read through this class only.
    public var socket: Int32 { isClosed ? -1 : PQsocket(handle) }

    /// Whether a transaction is open, sound or failed.
    var isInTransaction: Bool {
        guard !isClosed else { return false }
        let status = PQtransactionStatus(handle)
        return status == PQTRANS_INTRANS || status == PQTRANS_INERROR
    }

    /// Ends the session. May be called again. A statement under way goes on at the server until it notices.
    public func close() {
        guard !isClosed else { return }
        // PQfinish says goodbye politely; into a connection that is stuck it must not wait to do so.
        if state != .idle, PQsocket(handle) >= 0 { shutdown(PQsocket(handle), Int32(SHUT_RDWR)) }
        state = .unusable
        isClosed = true
        if let pending { PQclear(pending) }
        pending = nil
        PQfinish(handle)
    }

    func begin() throws(PostgresError) {
        switch state {
        case .idle: notices.clear()
        case .busy: throw misuse("another statement is under way; await its result first")
        case .unusable: throw PostgresError(.connectionLost, "the connection is closed; connect anew")
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

    /// Several statements have a result each, and one of them is kept: the first error; without an error the last result, or in a
    /// pipeline the one with rows, since `BEGIN` and `COMMIT` have none.
    private func keep(_ result: OpaquePointer) throws(PostgresError) {
        switch PQresultStatus(result) {
        case PGRES_COPY_IN, PGRES_COPY_OUT, PGRES_COPY_BOTH:
            PQclear(result)
            close()
            throw misuse("COPY to or from the client is not supported")
        default: break
        }
        if let earlier = pending {
            let hasRows = isPipelined && PQresultStatus(earlier) == PGRES_TUPLES_OK
            guard !Connection.isError(earlier), !hasRows || Connection.isError(result) else {
                PQclear(result)
                return
            }
            PQclear(earlier)
        }
        pending = result
    }

    /// The statement is over: everything it returned is here.
    private func finish() throws(PostgresError) -> QueryResult {
        guard let result = pending else { throw lost() }
        pending = nil
        state = PQstatus(handle) == CONNECTION_OK ? .idle : .unusable
        if let cancellation {
            self.cancellation = nil
            // A request still on its way could hit the next statement.
            if !cancellation.isOver(within: .seconds(1)) { close() }
        }
        guard Connection.isError(result) else {
            return QueryResult(result, warnings: notices.warnings)
        }
        defer { PQclear(result) }
        let (error, isFatal) = PostgresError.from(result: result)
        if isFatal { close() }
        throw error
    }

    private static func isError(_ result: OpaquePointer) -> Bool {
        switch PQresultStatus(result) {
        case PGRES_FATAL_ERROR, PGRES_BAD_RESPONSE, PGRES_NONFATAL_ERROR: true
        default: false
        }
    }

    /// The server may have said why before it closed the connection; that lies in libpq's buffer still.
    private func lostWhileBusy() -> PostgresError {
        let message = PostgresError.text(PQerrorMessage(handle))
        while PQstatus(handle) == CONNECTION_BAD, let result = PQgetResult(handle) {
            guard pending == nil, Connection.isError(result) else {
                PQclear(result)
                continue
            }
            pending = result
        }
        defer { close() }
        if let pending, Connection.isError(pending) {
            let error = PostgresError.from(result: pending).error
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
