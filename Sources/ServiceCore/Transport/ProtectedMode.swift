import NIOCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// Prevents a port from being opened to strangers by accident: an address that other machines can reach requires TLS
/// and tokens, or the setting `trusted-network`.
struct ProtectedMode: Sendable {
    /// Why a port was not opened, and the remedies.
    struct Refused: Error, Equatable, CustomStringConvertible {
        let description: String
    }

    private let hasTLS: Bool
    private let networkIsTrusted: Bool
    private let resolve: @Sendable (String) throws -> [SocketAddress]

    init(
        hasTLS: Bool,
        networkIsTrusted: Bool,
        resolve: @escaping @Sendable (String) throws -> [SocketAddress] = ProtectedMode.addresses
    ) {
        self.hasTLS = hasTLS
        self.networkIsTrusted = networkIsTrusted
        self.resolve = resolve
    }

    /// - Parameter hasTLS: whether the port to check has TLS.
    init(_ configuration: ServerConfiguration, hasTLS: Bool) {
        self.init(hasTLS: hasTLS, networkIsTrusted: configuration.settings.access.trustedNetwork)
    }

    /// - Parameters:
    ///   - setting: the setting of the address.
    ///   - requiresAuthentication: whether every request requires a token.
    /// - Throws: `Refused`, or when the host's name cannot be resolved.
    func check(
        _ address: ListenAddress,
        setting: SettingDefinition = Settings.listen,
        requiresAuthentication: Bool
    ) throws {
        guard !networkIsTrusted, !(hasTLS && requiresAuthentication) else { return }
        // Any address of a name may be opened.
        guard try !resolve(address.host).allSatisfy(ProtectedMode.isLoopback) else { return }
        let missing = (hasTLS ? [] : ["TLS"]) + (requiresAuthentication ? [] : ["tokens"])
        throw Refused(
            description: """
                \(setting.name)=\(address) can be reached by other machines, and there is no protection by \
                \(missing.joined(separator: " and ")). Either stay on this machine with \
                --\(setting.name) 127.0.0.1:\(address.port); or set tls-certificate and tls-key and create a token \
                (headroom token create), or set authentication=required; or, where only machines that you trust can \
                reach this address, say so with trusted-network=yes
                """
        )
    }

    /// 127.0.0.0/8 and ::1, also written as an IPv4 address within IPv6.
    static func isLoopback(_ address: SocketAddress) -> Bool {
        switch address {
        case .v4(let address):
            return UInt32(bigEndian: address.address.sin_addr.s_addr) >> 24 == 127
        case .v6(let address):
            return withUnsafeBytes(of: address.address.sin6_addr) { bytes in
                let isIPv6Loopback = bytes.dropLast().allSatisfy { $0 == 0 } && bytes[15] == 1
                let isMappedIPv4 = bytes[..<10].allSatisfy { $0 == 0 } && bytes[10] == 0xFF && bytes[11] == 0xFF
                return isIPv6Loopback || (isMappedIPv4 && bytes[12] == 127)
            }
        case .unixDomainSocket:
            return true
        }
    }

    /// All addresses of a host, not only the first.
    static func addresses(of host: String) throws -> [SocketAddress] {
        var hints = addrinfo()
        #if canImport(Glibc)
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        #else
        hints.ai_socktype = SOCK_STREAM
        #endif
        var first: UnsafeMutablePointer<addrinfo>?
        let status = getaddrinfo(host, nil, &hints, &first)
        guard status == 0 else {
            throw Refused(
                description: """
                    \(host) cannot be listened on: \(String(cString: gai_strerror(status))); listen and http must be addresses \
                    of this machine
                    """
            )
        }
        defer { freeaddrinfo(first) }
        var addresses: [SocketAddress] = []
        var entry = first
        while let info = entry?.pointee {
            switch info.ai_family {
            case AF_INET:
                info.ai_addr.withMemoryRebound(to: sockaddr_in.self, capacity: 1) {
                    addresses.append(SocketAddress($0.pointee, host: host))
                }
            case AF_INET6:
                info.ai_addr.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) {
                    addresses.append(SocketAddress($0.pointee, host: host))
                }
            default: break
            }
            entry = info.ai_next
        }
        return addresses
    }
}
