import LineProtocol

/// Why a request failed.
///
/// A message over the limit is not an error but a ``Decision``.
public struct HeadroomError: Error, Sendable {
    /// A code of the line protocol, or of the client.
    public struct Code: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
        public let rawValue: String

        public init(rawValue: String) {
            self.rawValue = rawValue
        }

        private init(_ code: ReplyError.Code) {
            rawValue = code.rawValue
        }

        /// The service does not support the request.
        public static let unknownCommand = Code(.err)
        /// An invalid argument.
        public static let badArgument = Code(.badArg)
        /// A request over the service's size limit.
        public static let tooLong = Code(.tooLong)
        /// Bytes that are not of the protocol.
        public static let protocolViolation = Code(.protocol)
        /// A token is required, or the token is not accepted.
        public static let notAuthenticated = Code(.noAuth)
        /// The token lacks the scope.
        public static let forbidden = Code(.forbidden)
        /// There is no such key, period or plan.
        public static let notFound = Code(.notFound)
        /// The key was used for something else, or was released: a new attempt needs a new key.
        public static let conflict = Code(.conflict)
        /// The hold has expired; nothing was counted.
        public static let expired = Code(.expired)
        /// The service's database cannot be reached; nothing was counted.
        public static let unavailable = Code(.unavailable)
        /// The request was sent, and it is unknown whether it took effect. It is safe to send it again with the error's
        /// ``HeadroomError/key``.
        public static let unknown = Code(.unknown)
        /// The service has too many requests; nothing was counted.
        public static let overloaded = Code(.overloaded)
        /// The service shuts down; nothing was counted.
        public static let draining = Code(.draining)
        /// The service speaks no such version of the protocol.
        public static let unsupportedVersion = Code(.noProto)
        /// A bug of the service.
        public static let `internal` = Code(.internal)

        /// No endpoint answered before the deadline; nothing was counted.
        public static let unreachable = Code(rawValue: "UNREACHABLE")
        /// The calling task was cancelled. If the request had been sent, it may have been counted.
        public static let cancelled = Code(rawValue: "CANCELLED")
        /// The client shuts down; nothing was counted.
        public static let shutDown = Code(rawValue: "SHUTDOWN")
        /// More requests wait in this client than ``HeadroomClient/Configuration/requestsMaximum``; nothing was
        /// counted.
        public static let tooManyRequests = Code(rawValue: "TOOMANY")
        /// The service's answer is not of the protocol.
        public static let malformedReply = Code(rawValue: "MALFORMED")

        /// The line protocol's, and the client's own.
        static let known = Set(ReplyError.Code.allCases.map(Code.init))
            .union([.unreachable, .cancelled, .shutDown, .tooManyRequests, .malformedReply])

        public var description: String { rawValue }
    }

    public var code: Code
    /// What was wrong, and what to do. For logs; texts for users are in ``UsageStatus``.
    public var message: String
    /// The cause, if there is one.
    public var underlying: (any Error)?
    /// The request's key. With the same key the request can be sent again without counting twice.
    public var key: MessageKey?
    /// The request was sent, and its outcome is unknown.
    var mayHaveTakenEffect = false

    public init(code: Code, message: String, underlying: (any Error)? = nil, key: MessageKey? = nil) {
        self.code = code
        self.message = message
        self.underlying = underlying
        self.key = key
    }

    /// Whether the same request may succeed later.
    public var isTransient: Bool {
        switch code {
        case .unavailable, .unknown, .overloaded, .draining, .unreachable, .tooManyRequests: true
        default: false
        }
    }
}

extension HeadroomError: CustomStringConvertible {
    public var description: String {
        underlying.map { "\(code) \(message) (\($0))" } ?? "\(code) \(message)"
    }
}

extension HeadroomError {
    /// Whether the answer leaves the outcome unknown.
    var leavesOutcomeUnknown: Bool { [.unknown, .internal, .malformedReply].contains(code) }

    init(_ error: ReceivedError, key: MessageKey?) {
        self.init(code: Code(rawValue: error.code), message: error.text, key: key)
    }

    static let shutDown = HeadroomError(
        code: .shutDown,
        message: "the client shuts down and accepts no more requests; nothing was counted"
    )

    static func unexpected(_ reply: ReceivedReply) -> HeadroomError {
        var error = HeadroomError(
            code: .malformedReply,
            message: "the answer does not match the request; is it another version, or another service?"
        )
        error.mayHaveTakenEffect = true
        return error
    }
}
