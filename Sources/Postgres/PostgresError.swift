import CLibPQ

/// Why a connection or a statement failed.
///
/// `message` and `hint` hold no password and no parameters of the statement. `detail` may hold values of rows ("Key
/// (user_id)=(…) already exists"): do not log it where personal data must not be.
public struct PostgresError: Error, Sendable, Hashable {
    public enum Kind: Sendable, Hashable {
        /// There is no connection; nothing was executed.
        case connectFailed
        /// The connection broke. What became of a statement under way is not known.
        case connectionLost
        /// The deadline passed. What became of the statement is not known; the connection is closed.
        case timedOut
        /// The server refused the statement and rolled it back; the connection can be used on.
        case server(SQLState)
        /// The caller broke the contract of `Connection`, for instance sent while a statement was under way.
        case misuse
    }

    public let kind: Kind
    public let message: String
    public let detail: String?
    public let hint: String?
    /// What the server said, also where it said it while closing the connection (`.connectionLost`).
    public let sqlState: SQLState?
    /// The character of the statement, counted from 1, at which the server saw the error.
    public let position: Int?
    /// The constraint that was violated, and its table with the schema, where the server named them.
    public let constraint: String?
    public let table: String?

    public init(
        _ kind: Kind,
        _ message: String,
        detail: String? = nil,
        hint: String? = nil,
        sqlState: SQLState? = nil,
        position: Int? = nil,
        constraint: String? = nil,
        table: String? = nil
    ) {
        self.kind = kind
        self.message = message
        self.detail = detail
        self.hint = hint
        self.position = position
        self.constraint = constraint
        self.table = table
        if case .server(let state) = kind {
            self.sqlState = sqlState ?? state
        } else {
            self.sqlState = sqlState
        }
    }

    /// Whether the same statement, on a new connection if this one broke, can succeed without anybody's doing.
    public var isTransient: Bool {
        switch kind {
        case .connectFailed, .connectionLost, .timedOut: true
        case .misuse: false
        case .server(let state): PostgresError.isTransient(state)
        }
    }

    private static func isTransient(_ state: SQLState) -> Bool {
        switch state {
        // A standby, or a primary that was just demoted: a new connection may find the primary.
        case .readOnlySQLTransaction: true
        case .lockNotAvailable, .queryCanceled, .adminShutdown, .crashShutdown, .cannotConnectNow: true
        // Connection, transaction rollback (deadlock, serialization), resources (connections, memory, disk).
        default: state.isClass("08") || state.isClass("40") || state.isClass("53")
        }
    }
}

extension PostgresError {
    /// The server is there, but is not the one that the connection string's TLS settings want: waiting changes nothing,
    /// and going on without would be what an attacker hopes for. libpq tells it by its words only, which are English
    /// where the process has set no locale, as ours has not.
    public var isAboutServerIdentity: Bool {
        kind == .connectFailed && PostgresError.identityProblems.contains { message.contains($0) }
    }

    /// A connection pooler gives the session to other clients, too: waiting changes nothing.
    public var isAboutSharedSession: Bool { sqlState == .sharedSession }

    static let sharedSession = PostgresError(
        .connectFailed,
        "a connection pooler gives this session to other clients between transactions, and theirs to this one",
        hint: "connect to PostgreSQL directly, or through a pool with pool_mode = session (PgBouncer): role, settings "
            + "and prepared statements belong to a session",
        sqlState: .sharedSession
    )

    private static let identityProblems = [
        "certificate verify failed", "does not match host name", "root certificate file", "server does not support SSL",
    ]
}

extension PostgresError {
    /// What happened, in words that anybody may read: no name of a host or of anything in the database.
    public var summary: String {
        if isAboutSharedSession { return "a connection pooler gives our sessions to other clients" }
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
    /// One line for a log: without `detail`.
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

    /// What a server says goes to terminals, too: nothing in it ends the line, moves the cursor or turns the text around.
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
    /// The error in a result; `isFatal` says that the server closes the connection after it.
    static func from(result: OpaquePointer) -> (error: PostgresError, isFatal: Bool) {
        func field(_ code: Character) -> String? {
            PQresultErrorField(result, Int32(code.asciiValue ?? 0)).map { String(cString: $0) }
        }
        let severity = field("V") ?? field("S")  // V is not translated, and there since 9.6
        let isClosing = severity == "FATAL" || severity == "PANIC"
        guard let code = field("C") else {
            // libpq's own errors have no SQLSTATE; they are about the connection or the protocol.
            return (PostgresError(.connectionLost, text(PQresultErrorMessage(result))), true)
        }
        let state = SQLState(rawValue: code)
        // A session knows the statements that it has prepared. One that does not, or that has them before, is somebody
        // else's: a pooler hands out sessions by the transaction. The next connection finds out, and is refused.
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

    /// libpq's message without the line end that it always has.
    static func text(_ message: UnsafePointer<CChar>?) -> String {
        guard let message else { return "out of memory" }
        var text = Substring(String(cString: message))
        while text.last?.isWhitespace == true { text.removeLast() }
        return text.isEmpty ? "the connection broke without a message" : String(text)
    }
}
