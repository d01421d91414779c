import LineProtocol
import NIOCore
import ServiceCore
import Usage

/// The limits of one connection. docs/reference/settings.md describes the settings that they come from.
struct ConnectionLimits: Sendable {
    var request: RequestLimits
    var inFlightMaximum: Int
    var outputBytesMaximum: Int
    var outputTimeout: TimeAmount
    var idleTimeout: TimeAmount
    var firstRequestTimeout: TimeAmount
    var incompleteRequestTimeout: TimeAmount = .seconds(10)
    var connectionsMaximum: Int
    var connectionsPerAddressMaximum = Int.max
    var allowsWhenUnavailable: Bool
    /// The namespace of users' names; nil where users are UUIDs only.
    var userNamespace: UserNamespace?
    var subscriptionsMaximum = 1_024
    /// How long a peer may take to authenticate where a token is required.
    var authenticationTimeout: TimeAmount = .seconds(10)
    /// How long a connection stays open after its last reply, or while the service drains, since it last received
    /// bytes.
    var lingerTimeout: TimeAmount = .milliseconds(250)
    /// How long it stays open at most, where the peer continues to send.
    var lingerMaximum: TimeAmount = .seconds(8)
    /// How long a refused connection stays open at most, which can only have sent bytes before it read the refusal.
    var refusalLingerMaximum: TimeAmount = .seconds(1)
    /// A peer that sends more than this after the last reply is disconnected. It is more than both kernels can buffer,
    /// which the peer may have sent before it read the reply.
    static let discardedBytesMaximum = 16 << 20
}

extension ConnectionLimits {
    init(_ configuration: ServerConfiguration) {
        let settings = configuration.settings
        let connections = settings.connections
        self.init(
            request: RequestLimits(
                bytesMaximum: connections.requestBytesMaximum,
                tokensMaximum: connections.requestArgumentsMaximum
            ),
            inFlightMaximum: connections.inFlightMaximum,
            outputBytesMaximum: connections.outputBytesMaximum,
            outputTimeout: TimeAmount(connections.outputTimeout),
            idleTimeout: TimeAmount(connections.idleTimeout),
            firstRequestTimeout: TimeAmount(connections.firstRequestTimeout),
            incompleteRequestTimeout: TimeAmount(connections.incompleteRequestTimeout),
            connectionsMaximum: configuration.connectionsMaximum,
            connectionsPerAddressMaximum: connections.connectionsPerAddressMaximum ?? .max,
            allowsWhenUnavailable: settings.counting.allowsWhenUnavailable,
            userNamespace: settings.counting.userNamespace,
            subscriptionsMaximum: connections.subscriptionsMaximum,
            authenticationTimeout: TimeAmount(settings.access.authenticationTimeout),
            lingerMaximum: TimeAmount(connections.drainTimeout)
        )
    }

    /// Enough for a name and a token in either framing; little memory for an unknown peer.
    private static let bytesBeforeAuthentication = 512

    var requestBeforeAuthentication: RequestLimits {
        var request = request
        request.bytesMaximum = min(request.bytesMaximum, ConnectionLimits.bytesBeforeAuthentication)
        return request
    }
}
