import NIOCore

/// The unit of connection limits by address: an IPv4 address, or the /64 network of an IPv6 address, because one
/// machine can use all addresses of such a network.
package enum PeerNetwork: Hashable, Sendable {
    case version4(UInt32)
    case version6(UInt64)

    /// The result is nil for a Unix socket.
    package init?(_ address: SocketAddress) {
        switch address {
        case .v4(let address):
            self = .version4(UInt32(bigEndian: address.address.sin_addr.s_addr))
        case .v6(let address):
            self.init(version6: withUnsafeBytes(of: address.address.sin6_addr) { Array($0) })
        case .unixDomainSocket:
            return nil
        }
    }

    private init(version6 bytes: [UInt8]) {
        func number(_ range: Range<Int>) -> UInt64 { bytes[range].reduce(0) { $0 << 8 | UInt64($1) } }
        // A dual-stack socket shows an IPv4 peer as ::ffff:192.0.2.1.
        if number(0..<8) == 0, number(8..<12) == 0xFFFF {
            self = .version4(UInt32(number(12..<16)))
        } else {
            self = .version6(number(0..<8))
        }
    }
}
