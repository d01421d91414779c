/// An answer that begins with `-`: a code for programs, and a text for people.
///
/// The text names the cause and the remedy. It never repeats bytes of the request, which may contain terminal escapes
/// or a misplaced secret, because clients log it.
public struct ReplyError: Error, Sendable, Equatable {
    public var code: Code
    /// After how many milliseconds the client should retry. It is written before the text as `retry_ms=N`.
    public var retryAfterMilliseconds: Int?
    public var text: String

    public init(code: Code, retryAfterMilliseconds: Int? = nil, text: String) {
        self.code = code
        self.retryAfterMilliseconds = retryAfterMilliseconds
        self.text = text
    }
}

extension ReplyError {
    /// The code by which programs decide. Its raw value is sent.
    public enum Code: String, CaseIterable, Sendable {
        case err = "ERR"
        case badArg = "BADARG"
        case tooLong = "TOOLONG"
        case `protocol` = "PROTOCOL"
        case noAuth = "NOAUTH"
        case forbidden = "FORBIDDEN"
        case notFound = "NOTFOUND"
        case conflict = "CONFLICT"
        case expired = "EXPIRED"
        case unavailable = "UNAVAILABLE"
        case unknown = "UNKNOWN"
        case overloaded = "OVERLOADED"
        case draining = "DRAINING"
        case noProto = "NOPROTO"
        case `internal` = "INTERNAL"

        /// When the code is sent. A test compares docs/reference/errors.md with it.
        public var meaning: String {
            switch self {
            case .err:
                "no such verb or subcommand; a client's name with a space; a verb that a RESP2 connection with "
                    + "subscriptions cannot use"
            case .badArg:
                "malformed user, number, key, period, option; wrong count of arguments; "
                    + "invalid UTF-8 or a control character"
            case .tooLong: "request over the size limit; then closes"
            case .protocol:
                "broken array framing; a first line of HTTP, TLS or PROXY; plain text on a port with TLS; then closes"
            case .noAuth: "not authenticated; closes when the connection's token has ended"
            case .forbidden: "token lacks the scope"
            case .notFound: "no such key, period or plan; or a user that a foreign key of `message_usage` refuses"
            case .conflict: "key reused with another n, verb, model or member, or released"
            case .expired: "the hold's time has passed"
            case .unavailable: "the database cannot be reached, or cannot execute the request now"
            case .unknown: "the outcome is not known in time; only a retry with the same key is safe"
            case .overloaded:
                "too many requests to execute in time; too many connections with one token; or too many in total or "
                    + "from one address: then closes"
            case .draining: "shutting down; closes after the last reply"
            case .noProto: "another version in `HELLO` than 2 or 3"
            case .internal: "a bug, logged with a reference; or a value in the database that is out of range"
            }
        }

        /// Whether sending the same request again can help.
        public var retryHelps: String {
            switch self {
            case .err, .badArg, .tooLong, .protocol, .noAuth, .forbidden, .notFound, .conflict, .noProto: "no"
            case .expired: "with a new key"
            case .unavailable, .overloaded: "yes"
            case .unknown: "same key"
            case .draining: "elsewhere"
            case .internal: "–"
            }
        }
    }
}

extension ReplyError {
    static func badArgument(_ text: String) -> ReplyError { ReplyError(code: .badArg, text: text) }

    static func tooLong(bytes limit: Int) -> ReplyError {
        ReplyError(code: .tooLong, text: "a request is at most \(limit) bytes; closing, connect again and send less")
    }

    static func tooLong(tokens limit: Int) -> ReplyError {
        ReplyError(code: .tooLong, text: "a request is at most \(limit) tokens; closing, connect again and send less")
    }

    static func brokenFraming(_ text: String) -> ReplyError {
        ReplyError(code: .protocol, text: "\(text); closing, because the next request cannot be found")
    }

    static let unknownCommand = ReplyError(code: .err, text: "unknown command; HELP lists the verbs")

    static func unknownSubcommand(of verb: Verb) -> ReplyError {
        ReplyError(code: .err, text: "unknown subcommand or wrong arguments; HELP \(verb.rawValue) lists those known")
    }

    static let unsupportedVersion = ReplyError(
        code: .noProto,
        text: "unsupported protocol version; HELLO takes the RESP version 2 or 3"
    )
}
