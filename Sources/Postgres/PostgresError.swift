import CLibPQ

/// Why a connection or a statement failed.
///
/// `message` and `hint` hold no password and no parameters of the statement. `detail` may hold values of rows ("Key
/// (user_id)=(…) already exists"): do not log it where personal data must not be.
public struct PostgresError: Error, Sendable, Hashable {
    public enum Kind: Sendable, Hashable {
        /// There is no connection; nothing was executed.
        case connectFailed
        /// The connection broke. The outcome of the current statement is unknown.
        case connectionLost
        /// The deadline passed. The outcome of the statement is unknown; the connection is closed, or late if
        /// `isKeptWhenLate`.
        case timedOut
        /// The server refused the statement and rolled it back; the connection stays usable.
        case server(SQLState)
        /// The caller broke the contract of `DatabaseConnection`, for instance sent two statements at once.
        case misuse
    }

    public let kind: Kind
    public let message: String
    public let detail: String?
    public let hint: String?
    /// The server's code. It is also set if the server closed the connection with it (`.connectionLost`).
    public let sqlState: SQLState?
    /// The code with which a running server refused the session while libpq connected (`.connectFailed`).
    public let refusal: SQLState?
    /// The position of the error in the statement, in characters from 1.
    public let position: Int?
    /// The violated constraint, and its table with the schema, if the server named them.
    public let constraint: String?
    public let table: String?

    public init(
        _ kind: Kind,
        _ message: String,
        detail: String? = nil,
        hint: String? = nil,
        sqlState: SQLState? = nil,
        refusal: SQLState? = nil,
        position: Int? = nil,
        constraint: String? = nil,
        table: String? = nil
    ) {
        self.kind = kind
        self.message = message
        self.detail = detail
        self.hint = hint
        self.refusal = refusal
        self.position = position
        self.constraint = constraint
        self.table = table
        if case .server(let state) = kind {
            self.sqlState = sqlState ?? state
        } else {
            self.sqlState = sqlState
        }
    }

    /// Whether a retry of the statement, on a new connection if this one broke, may succeed.
    public var isTransient: Bool {
        switch kind {
        case .connectFailed, .connectionLost, .timedOut: true
        case .misuse: false
        case .server(let state): PostgresError.isTransient(state)
        }
    }

    private static func isTransient(_ state: SQLState) -> Bool {
        switch state {
        // The server is a standby, or a primary that was just demoted: a new connection may find the primary.
        case .readOnlySQLTransaction: true
        case .lockNotAvailable, .queryCanceled, .adminShutdown, .crashShutdown, .cannotConnectNow: true
        // The classes are connection, transaction rollback (deadlock, serialization), and resources (connections,
        // memory, disk).
        default: state.isClass("08") || state.isClass("40") || state.isClass("53")
        }
    }
}

extension PostgresError {
    /// Whether no server was reachable: the network or the server failed, it starts, stops or recovers, it is a
    /// standby, or a pooler has no connection to it. It is false if a running server refused the session or the
    /// statement, even for lack of connections, memory or disk, and if it was only slow.
    public var isAboutReachability: Bool {
        switch kind {
        case .connectFailed:
            refusal == nil && !isAboutServerIdentity && !message.contains("no password supplied")
                && sqlState.map(PostgresError.isAboutReachability) ?? true
        case .connectionLost: sqlState.map(PostgresError.isAboutReachability) ?? true
        case .timedOut, .server, .misuse: false
        }
    }

    static func isAboutReachability(_ state: SQLState) -> Bool {
        switch state {
        case .adminShutdown, .crashShutdown, .cannotConnectNow: true
        default: state.isClass("08")
        }
    }

    /// Whether the server is not the one that the TLS settings of the connection string require. A retry does not help,
    /// and connecting without TLS would help an attacker. libpq reports this only by its message, which is English
    /// because this process sets no locale.
    public var isAboutServerIdentity: Bool {
        kind == .connectFailed && PostgresError.identityProblems.contains { message.contains($0) }
    }

    /// Whether a connection pooler shares the session with other clients. A retry does not help.
    public var isAboutSharedSession: Bool { sqlState == .sharedSession }

    static let sharedSession = PostgresError(
        .connectFailed,
        "a connection pooler shares this session with other clients",
        hint: "connect to PostgreSQL directly, or through a pool with pool_mode = session (PgBouncer): role, settings "
            + "and prepared statements belong to a session",
        sqlState: .sharedSession
    )

    private static let identityProblems = [
        "certificate verify failed", "does not match host name", "root certificate file", "server does not support SSL",
    ]
}

extension PostgresError {
    /// A text for the public, without names of hosts or of anything in the database.
    public var summary: String {
        if isAboutSharedSession { return "a connection pooler shares sessions with other clients" }
        return switch kind {
        case .connectFailed: "the database cannot be reached, or refuses the connection"
        case .connectionLost: "the connection to the database broke"
        case .timedOut: "the database did not answer in time"
        case .server(let state): "the database refused a statement with SQLSTATE \(state)"
        case .misuse: "an error in this program"
        }
    }
}

extension PostgresError: CustomStringConvertible {
    /// The error in one line for a log, without `detail`.
    public var description: String {
        let label =
            switch kind {
            case .connectFailed: "cannot connect"
            case .connectionLost: "connection lost"
            case .timedOut: "timed out"
            case .server(let state): "SQLSTATE \(state)"
            case .misuse: "misuse"
            }
        return PostgresError.oneLine("\(label): \(message)" + (hint.map { " (hint: \($0))" } ?? ""))
    }

    /// Escapes characters that would end the line, move a terminal's cursor or change the direction of text.
    private static func oneLine(_ text: String) -> String {
        var line = ""
        for scalar in text.unicodeScalars {
            switch scalar.properties.generalCategory {
            case .control where scalar.properties.isWhitespace: line += " "
            case .control, .format, .lineSeparator, .paragraphSeparator:
                line += "\\u{\(String(scalar.value, radix: 16))}"
            default: line.unicodeScalars.append(scalar)
            }
        }
        return line
    }
}

extension PostgresError {
    /// Returns the error in a result; `isFatal` says that the server closes the connection after it.
    static func from(result: OpaquePointer) -> (error: PostgresError, isFatal: Bool) {
        func field(_ code: Character) -> String? {
            PQresultErrorField(result, Int32(code.asciiValue ?? 0)).map { String(cString: $0) }
        }
        let severity = field("V") ?? field("S")  // V is not translated, and exists since 9.6
        let isClosing = severity == "FATAL" || severity == "PANIC"
        guard let code = field("C") else {
            // libpq's own errors have no SQLSTATE; they are about the connection or the protocol.
            return (PostgresError(.connectionLost, text(PQresultErrorMessage(result))), true)
        }
        let state = SQLState(rawValue: code)
        // If a prepared statement is missing, or exists too early, a pooler shares the session by the transaction. The
        // next connection detects this, and is refused.
        let isForeign = state == .invalidSQLStatementName || state == .duplicatePreparedStatement
        let isFatal = isClosing || isForeign
        let error = PostgresError(
            isFatal ? .connectionLost : .server(state),
            field("M") ?? "the server gave no message",
            detail: field("D"),
            hint: field("H"),
            sqlState: state,
            position: field("P").flatMap { Int($0) },
            constraint: field("n"),
            table: field("s").flatMap { schema in field("t").map { "\(schema).\($0)" } }
        )
        return (error, isFatal)
    }

    /// Returns libpq's message without its line end.
    static func text(_ message: UnsafePointer<CChar>?) -> String {
        guard let message else { return "out of memory" }
        var text = Substring(String(cString: message))
        while text.last?.isWhitespace == true { text.removeLast() }
        return text.isEmpty ? "the connection broke without a message" : String(text)
    }
}
