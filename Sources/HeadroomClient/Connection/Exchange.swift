import LineProtocol

/// The outcome of sending a request once.
enum Exchange: Sendable {
    case reply(ReceivedReply)
    /// The connection ended first. `wasSent` is false only if the request was certainly not sent.
    case lost(wasSent: Bool, cause: (any Error)?)
    /// The request was sent and got no answer in time.
    case timedOut
    /// No endpoint could be connected to in time.
    case unreachable(cause: (any Error)?)
    /// The service refuses the client, so retries are of no use.
    case refused(HeadroomError)
    case cancelled(wasSent: Bool)
}

typealias ExchangeWaiter = UnsafeContinuation<Exchange, Never>

extension Exchange {
    var isNotAuthenticated: Bool {
        if case .reply(.error(let error)) = self { error.code == ReplyError.Code.noAuth.rawValue } else { false }
    }
}
