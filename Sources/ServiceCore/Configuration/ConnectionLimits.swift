import LineProtocol
import NIOCore
import Usage

/// The limits of one connection. docs/reference/settings.md describes the settings that they come from.
package struct ConnectionLimits: Sendable {
    package var request: RequestLimits
    package var inFlightMaximum: Int
    package var outputBytesMaximum: Int
    package var outputTimeout: TimeAmount
    package var idleTimeout: TimeAmount
    package var firstRequestTimeout: TimeAmount
    package var incompleteRequestTimeout: TimeAmount = .seconds(10)
    package var connectionsMaximum: Int
    package var connectionsPerAddressMaximum = Int.max
    package var allowsWhenUnavailable: Bool
    /// Of users' names; nil where users are UUIDs only.
    package var userNamespace: UserNamespace?
    package var subscriptionsMaximum = 1_024
    /// How long a peer may take to authenticate where a token is required.
    package var authenticationTimeout: TimeAmount = .seconds(10)
    /// How long a connection stays open after its last reply, or while the service drains, since it last received
    /// bytes.
    package var lingerTimeout: TimeAmount = .milliseconds(250)
    /// How long it stays open at most, where the peer continues to send.
    package var lingerMaximum: TimeAmount = .seconds(8)
    /// The same for a refused connection, which can only have sent bytes before it read the refusal.
    package var refusalLingerMaximum: TimeAmount = .seconds(1)
    /// A peer that sends more than this after the last reply is disconnected. Larger than what both kernels can buffer,
    /// which the peer may have sent before it read the reply.
    package static let discardedBytesMaximum = 16 << 20
}

extension ConnectionLimits {
    /// Enough for a name and a token in either framing; little memory for an unknown peer.
    private static let bytesBeforeAuthentication = 512

    package var requestBeforeAuthentication: RequestLimits {
        var request = request
        request.bytesMaximum = min(request.bytesMaximum, ConnectionLimits.bytesBeforeAuthentication)
        return request
    }
}
