import LineProtocol
import ServiceCore

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
}
