import LineProtocol

/// What came of sending a request once.
enum Exchange: Sendable {
    case reply(ReceivedReply)
    /// The connection has ended first. It was sent, unless it is known that it was not.
    case lost(wasSent: Bool, cause: (any Error)?)
    /// It was sent, and no answer came in time.
    case timedOut
    /// Nobody could be connected to in time.
    case unreachable(cause: (any Error)?)
    /// It is no use to try again: the service refuses the client, not the request.
    case refused(HeadroomError)
    case cancelled(wasSent: Bool)
}

typealias ExchangeWaiter = UnsafeContinuation<Exchange, Never>

extension Exchange {
    var isNotAuthenticated: Bool {
        if case .reply(.error(let error)) = self { error.code == ReplyError.Code.noAuth.rawValue } else { false }
    }
}
