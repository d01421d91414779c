import LineProtocol

/// Why a request was not answered, or refused.
///
/// A user's limit is no error: that is a ``Decision``.
public struct HeadroomError: Error, Sendable {
    /// What a program decides by: a code of the line protocol, or one of the client's own.
    public struct Code: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
        public let rawValue: String

        public init(rawValue: String) {
            self.rawValue = rawValue
        }

        private init(_ code: ReplyError.Code) {
            rawValue = code.rawValue
        }

        /// A request that the service does not know.
        public static let unknownCommand = Code(.err)
        /// An argument that the service cannot take.
        public static let badArgument = Code(.badArg)
        /// A request over the service's size limit.
        public static let tooLong = Code(.tooLong)
        /// Bytes that the service cannot understand.
        public static let protocolViolation = Code(.protocol)
        /// A token is required, or the one that was given is not accepted.
        public static let notAuthenticated = Code(.noAuth)
        /// The token lacks the scope.
        public static let forbidden = Code(.forbidden)
        /// There is no such key, period or plan.
        public static let notFound = Code(.notFound)
        /// The key was used for something else, or was released before it was to be committed.
        public static let conflict = Code(.conflict)
        /// The hold's time has passed; nothing was counted.
        public static let expired = Code(.expired)
        /// The service's database cannot be reached; nothing was counted.
        public static let unavailable = Code(.unavailable)
        /// The request was sent, and it could not be learned in time whether it took effect. It is safe to send it again
        /// with the error's ``HeadroomError/key``.
        public static let unknown = Code(.unknown)
        /// More waits than the service can serve in time; nothing was counted.
        public static let overloaded = Code(.overloaded)
        /// The service shuts down; nothing was counted.
        public static let draining = Code(.draining)
        /// A bug of the service.
        public static let `internal` = Code(.internal)

        /// No endpoint answered before the deadline; nothing was counted.
        public static let unreachable = Code(rawValue: "UNREACHABLE")
        /// The calling task was cancelled. What had been sent may have been counted.
        public static let cancelled = Code(rawValue: "CANCELLED")
        /// The client shuts down and takes nothing more; nothing was counted.
        public static let shutDown = Code(rawValue: "SHUTDOWN")
        /// More requests wait in this client than ``HeadroomClient/Configuration/requestsMaximum``; nothing was counted.
        public static let tooManyRequests = Code(rawValue: "TOOMANY")
        /// The service's answer is not understood.
        public static let malformedReply = Code(rawValue: "MALFORMED")

        /// The line protocol's, and the client's own.
        static let known = Set(ReplyError.Code.allCases.map(Code.init))
            .union([.unreachable, .cancelled, .shutDown, .tooManyRequests, .malformedReply])

        public var description: String { rawValue }
    }

    public var code: Code
    /// What was wrong, and what to do. For logs; what to show to users stands in a ``UsageStatus``.
    public var message: String
    /// What caused it, where there is more to know.
    public var underlying: (any Error)?
    /// The key that the request carried: with it, it can be sent again without counting twice.
    public var key: MessageKey?
    /// It was sent, and what became of it is not known.
    var mayBeDone = false

    public init(code: Code, message: String, underlying: (any Error)? = nil, key: MessageKey? = nil) {
        self.code = code
        self.message = message
        self.underlying = underlying
        self.key = key
    }

    /// The same request may succeed later.
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
    /// An answer that leaves open whether anything was done.
    var isSilentOnOutcome: Bool { [.unknown, .internal, .malformedReply].contains(code) }

    init(_ error: ReceivedError, key: MessageKey?) {
        self.init(code: Code(rawValue: error.code), message: error.text, key: key)
    }

    static let shutDown = HeadroomError(
        code: .shutDown,
        message: "the client shuts down and takes no more requests; nothing was counted"
    )

    static func unexpected(_ reply: ReceivedReply) -> HeadroomError {
        var error = HeadroomError(
            code: .malformedReply,
            message: "the answer is of another kind than the question; is it another version, or another service?"
        )
        error.mayBeDone = true
        return error
    }
}
