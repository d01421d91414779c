import Engine
import LineProtocol
import Usage

extension ReplyError {
    static let draining = ReplyError(
        code: .draining,
        text: "this instance is shutting down; nothing was counted, try another; closing"
    )

    static let onlySubscriptions = ReplyError(
        code: .err,
        text: "only SUBSCRIBE, UNSUBSCRIBE, PING and QUIT while subscribed; use another connection, or HELLO 3 first"
    )

    /// A subscription ends with the identity that made it.
    static let helloWhileSubscribed = ReplyError(code: .err, text: "UNSUBSCRIBE before another HELLO or AUTH")

    static let tooManyConnections = ReplyError(
        code: .overloaded,
        retryAfterMilliseconds: 1_000,
        text: "too many connections; close some or raise connections-maximum; closing"
    )

    static let tooManyConnectionsFromAddress = ReplyError(
        code: .overloaded,
        retryAfterMilliseconds: 1_000,
        text: "too many connections from this address; close some or raise connections-per-address-maximum; closing"
    )

    package init(_ error: EngineError) {
        switch error.code {
        case .unreachable, .unavailable:
            self.init(code: .unavailable, retryAfterMilliseconds: 500, text: error.message)
        case .unknown: self.init(code: .unknown, text: error.message)
        case .overloaded:
            let retry = error.retryAfterMilliseconds ?? 100
            self.init(code: .overloaded, retryAfterMilliseconds: retry, text: error.message)
        case .notFound: self.init(code: .notFound, text: error.message)
        case .badArgument: self.init(code: .badArg, text: error.message)
        case .conflict: self.init(code: .conflict, text: error.message)
        case .expired: self.init(code: .expired, text: error.message)
        case .internal: self.init(code: .internal, text: error.message)
        }
    }

    /// The reply to a failed `USAGE`. A client may show it to a person, so the text of a transient error is friendly,
    /// and promises what a message would get now.
    package init(reading error: EngineError, allowsWhenUnavailable: Bool) {
        self.init(error)
        guard error.isTransient else { return }
        let isAllowed = allowsWhenUnavailable && error.code == .unreachable
        text = Phrase(isAllowed ? .uncounted : .unreadable).text
    }
}
