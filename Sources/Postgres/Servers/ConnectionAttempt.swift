import CLibPQ
import Foundation

/// Opens a libpq connection to one server, and asks the server what it is, without blocking inside libpq.
///
/// It is for one thread. It closes its connection at its end, unless `take` was called.
final class ConnectionAttempt {
    enum Progress {
        /// The caller waits for `events` at `socket`, then calls `advance` again.
        case waiting
        case answered(ServerState)
        case failed(PostgresError)
    }

    private enum Step {
        /// libpq connects. Can transition to: asking, failed.
        case connecting(PostgresPollingStatusType)
        /// The server has been asked. Can transition to: answered, failed.
        case asking
        /// The server has answered. Can transition to: asking.
        case answered
        /// The connection failed; `advance` does nothing any more. Final.
        case failed
    }

    let parameters: ConnectionParameters
    private var handle: OpaquePointer?
    // libpq's manual requires to act as if PQconnectPoll had returned PGRES_POLLING_WRITING before its first call.
    private var step = Step.connecting(PGRES_POLLING_WRITING)
    /// The server's answer, until libpq says that there is no more.
    private var state: ServerState?

    /// - Parameter parameters: the parameters of one server. A name may stand for several addresses, which libpq tries
    ///   in turn.
    init(_ parameters: ConnectionParameters) throws(PostgresError) {
        self.parameters = parameters
        handle = try ConnectionAttempt.start(parameters)
    }

    deinit {
        if let handle { PQfinish(handle) }
    }

    /// Returns the connection, which the caller must end with PQfinish; nil if it was taken before.
    func take() -> OpaquePointer? {
        defer { handle = nil }
        return handle
    }

    /// The socket; -1 if there is none. It may change with each step, because libpq opens a socket for each address.
    var socket: Int32 { handle.map { PQsocket($0) } ?? -1 }

    var events: SocketWait.Events {
        switch step {
        case .connecting(let status): status == PGRES_POLLING_READING ? .read : .write
        case .asking, .answered, .failed: .read
        }
    }

    /// Whether the server owes an answer.
    var isWaiting: Bool {
        switch step {
        case .connecting, .asking: true
        case .answered, .failed: false
        }
    }

    /// Asks a connected server, also again after an answer.
    ///
    /// - Returns: false if the connection broke.
    func ask() -> Bool {
        guard let handle, PQsendQuery(handle, ServerState.question) == 1 else { return false }
        state = nil
        step = .asking
        return true
    }

    /// Does what can be done without waiting, once the socket is ready.
    func advance() -> Progress {
        guard let handle else { return .waiting }
        if case .connecting = step {
            guard PQstatus(handle) != CONNECTION_BAD else { return fail(handle) }
            let status = PQconnectPoll(handle)
            switch status {
            case PGRES_POLLING_OK:
                _ = PQsetErrorVerbosity(handle, PQERRORS_DEFAULT)
                guard PQsetnonblocking(handle, 1) == 0, ask() else { return fail(handle) }
            case PGRES_POLLING_FAILED: return fail(handle)
            default:
                step = .connecting(status)
                return .waiting
            }
        }
        return readAnswer(handle)
    }

    private func readAnswer(_ handle: OpaquePointer) -> Progress {
        guard case .asking = step else { return .waiting }
        // The question is short: it fits into the socket's empty send buffer, so nothing has to wait to be sent.
        guard PQflush(handle) >= 0, PQconsumeInput(handle) == 1 else { return fail(handle) }
        while PQisBusy(handle) == 0 {
            guard let result = PQgetResult(handle) else {
                guard PQstatus(handle) == CONNECTION_OK, let state else { return fail(handle) }
                step = .answered
                return .answered(state)
            }
            state = state ?? serverState(result, handle)
            PQclear(result)
        }
        return .waiting
    }

    /// Reads the answer. It has no timeline if the server refuses the question; PostgreSQL 14 and later report without
    /// a question that they are a standby.
    private func serverState(_ result: OpaquePointer, _ handle: OpaquePointer) -> ServerState {
        guard PQresultStatus(result) == PGRES_TUPLES_OK, PQntuples(result) == 1 else {
            let standby = PQparameterStatus(handle, "in_hot_standby").map { String(cString: $0) }
            return ServerState(isStandby: standby == "on", timeline: nil)
        }
        func text(_ column: Int32) -> String? {
            PQgetisnull(result, 0, column) == 1 ? nil : PQgetvalue(result, 0, column).map { String(cString: $0) }
        }
        return ServerState(
            isStandby: text(0) == "t",
            systemIdentifier: text(1).flatMap { Int64($0) },
            walFile: text(2),
            recorded: [text(3), text(4)].compactMap { $0.flatMap { UInt32($0) } }
        )
    }

    private func fail(_ handle: OpaquePointer) -> Progress {
        step = .failed
        let failure = ConnectFailureMessage(PostgresError.text(PQerrorMessage(handle)))
        return .failed(
            PostgresError(
                .connectFailed,
                failure.text,
                hint: ConnectionAttempt.hint(for: failure.text),
                refusal: failure.refusal
            )
        )
    }

    /// Waits until one of the sockets is ready, or the deadline.
    ///
    /// - Returns: for each attempt whether its socket is ready.
    static func wait(for attempts: [ConnectionAttempt], until deadline: ContinuousClock.Instant) -> [Bool] {
        var entries = attempts.map { pollfd(fd: $0.socket, events: $0.events.rawValue, revents: 0) }
        guard poll(&entries, nfds_t(entries.count), SocketWait.milliseconds(until: deadline)) >= 0 else {
            return attempts.map { _ in false }
        }
        return entries.map { $0.revents != 0 }
    }

    /// Opens the connection to this server alone.
    func run(until deadline: ContinuousClock.Instant) throws(PostgresError) -> PrimarySearch.Found {
        while ContinuousClock.now < deadline {
            guard ConnectionAttempt.wait(for: [self], until: deadline) == [true] else { continue }
            switch advance() {
            case .waiting: break
            case .answered(let state):
                if let handle = take() {
                    return PrimarySearch.Found(handle: handle, state: state, parameters: parameters)
                }
            case .failed(let error): throw error
            }
        }
        throw .noAnswer
    }

    private static func start(_ parameters: ConnectionParameters) throws(PostgresError) -> OpaquePointer {
        let keywords = parameters.values.map { strdup($0.keyword) }
        let values = parameters.values.map { strdup($0.value) }
        defer {
            for copy in keywords + values { free(copy) }
        }
        let handle = (keywords.map { UnsafePointer($0) } + [nil]).withUnsafeBufferPointer { keywords in
            (values.map { UnsafePointer($0) } + [nil]).withUnsafeBufferPointer { values in
                PQconnectStartParams(keywords.baseAddress, values.baseAddress, 0)
            }
        }
        guard let handle else { throw PostgresError(.connectFailed, "out of memory") }
        // The verbose form includes the SQLSTATE of a server's error, which libpq reports in no other way.
        _ = PQsetErrorVerbosity(handle, PQERRORS_VERBOSE)
        return handle
    }

    /// Returns advice about the most common errors, by their English texts. The server's messages may be translated.
    private static func hint(for message: String) -> String? {
        if message.contains("Connection refused") || message.contains("No such file or directory") {
            return "is the server running, and does the connection string name its host and port?"
        }
        if message.contains("password authentication failed") || message.contains("no password supplied") {
            return "check user and password of the connection string, or PGPASSFILE"
        }
        if message.contains("certificate verify failed") {
            return "the server's certificate is not signed by a CA of sslrootcert, or is not valid now"
        }
        if message.contains("does not match host name") {
            return "connect by a name in the server's certificate; sslmode=verify-full compares it"
        }
        if message.contains("root certificate file") {
            return "sslrootcert names the file with the CA of the server's certificate"
        }
        if message.contains("server does not support SSL") {
            return "turn ssl on in PostgreSQL, or correct sslmode"
        }
        if message.contains("does not exist") {
            return "create it (createdb, createuser), or correct the connection string"
        }
        return nil
    }
}
