import NIOCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// A listening socket that the service manager has opened and passed on (sd_listen_fds(3)). It stays open while the
/// service restarts, so that no connection is refused meanwhile.
public struct InheritedSocket: Sendable, Equatable {
    package var descriptor: CInt
    /// `FileDescriptorName` of the socket's unit; by default the unit's name.
    var name: String
    package var address: ListenAddress

    private static let firstDescriptor: CInt = 3

    /// The sockets that were passed to this process.
    ///
    /// - Throws: if one is no listening TCP socket.
    public static func all(in environment: [String: String]) throws(InvalidSetting) -> [InheritedSocket] {
        guard environment["LISTEN_PID"] == "\(getpid())", let count = environment["LISTEN_FDS"].flatMap({ CInt($0) }),
            count > 0
        else { return [] }
        let names = (environment["LISTEN_FDNAMES"] ?? "").split(separator: ":", omittingEmptySubsequences: false)
        var sockets: [InheritedSocket] = []
        for index in 0..<Int(count) {
            let descriptor = firstDescriptor + CInt(index)
            let name = index < names.count ? String(names[index]) : ""
            guard isListening(descriptor), let address = address(of: descriptor) else {
                throw InvalidSetting(
                    text: """
                        descriptor \(descriptor) (\(name)) of the service manager is no listening TCP socket; set ListenStream to an \
                        address and a port
                        """
                )
            }
            sockets.append(InheritedSocket(descriptor: descriptor, name: name, address: address))
        }
        return sockets
    }

    /// Programs that the service starts must not keep the sockets open.
    public func closeOnExecute() {
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    }

    private static func isListening(_ descriptor: CInt) -> Bool {
        var value: CInt = 0
        var size = socklen_t(MemoryLayout<CInt>.size)
        return getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &value, &size) == 0 && value == 1
    }

    private static func address(of descriptor: CInt) -> ListenAddress? {
        var storage = sockaddr_storage()
        var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let status = withUnsafeMutablePointer(to: &storage) { storage in
            storage.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &size) }
        }
        guard status == 0 else { return nil }
        let address: SocketAddress? = withUnsafePointer(to: &storage) { storage in
            switch CInt(storage.pointee.ss_family) {
            case AF_INET:
                storage.withMemoryRebound(to: sockaddr_in.self, capacity: 1) { SocketAddress($0.pointee, host: "") }
            case AF_INET6:
                storage.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) { SocketAddress($0.pointee, host: "") }
            default: nil
            }
        }
        guard let address, let host = address.ipAddress, let port = address.port else { return nil }
        return ListenAddress(host: host, port: port)
    }
}

/// Which inherited socket is for which port: by its name, `line` or `http`, else by the port's number.
struct PortSockets {
    private(set) var line: InheritedSocket?
    private(set) var http: InheritedSocket?

    /// - Throws: if a socket is for no port, or contradicts a setting that was given.
    init(_ sockets: [InheritedSocket], _ settings: SettingValues<Settings>) throws(InvalidSetting) {
        guard !sockets.isEmpty else { return }
        let (listen, httpAddress) = (settings.connections.listen, settings.http.address)
        let (isListenSet, isHTTPSet) = (settings.connections.isSet(\.listen), settings.http.isSet(\.address))
        if settings.connections.reusesPort {
            throw InvalidSetting(
                text: "reuse-port=on is for ports that the service opens, but the service manager has opened them"
            )
        }
        for socket in sockets {
            let isLine = socket.name == "line" || socket.name != "http" && socket.address.port == listen.port
            let isHTTP = socket.name == "http" || socket.name != "line" && socket.address.port == httpAddress?.port
            switch (isLine, isHTTP) {
            case (true, _) where line == nil:
                try PortSockets.compare(socket, Settings.listen, listen, isSet: isListenSet)
                line = socket
            case (false, true) where http == nil:
                try PortSockets.compare(socket, Settings.http, httpAddress, isSet: isHTTPSet)
                http = socket
            case (false, false):
                throw InvalidSetting(
                    text: """
                        the service manager's socket \(socket.address) (\(socket.name)) is neither for listen nor for http: set \
                        FileDescriptorName=line or http
                        """
                )
            default:
                throw InvalidSetting(
                    text: "the service manager has a second socket for one port, \(socket.address) (\(socket.name))"
                )
            }
        }
    }

    private static func compare(
        _ socket: InheritedSocket,
        _ setting: SettingDefinition,
        _ address: ListenAddress?,
        isSet: Bool
    ) throws(InvalidSetting) {
        guard isSet, address.map({ !socket.address.isSame(as: $0) }) ?? true else { return }
        throw InvalidSetting(
            text: """
                \(setting.name)=\(address.map { "\($0)" } ?? "off") contradicts the service manager's socket \(socket.address): \
                remove the setting, or correct the socket's unit
                """
        )
    }
}

extension ListenAddress {
    /// - Parameter other: its host may be a name, which is not compared.
    fileprivate func isSame(as other: ListenAddress) -> Bool {
        guard port == other.port, let address = try? SocketAddress(ipAddress: other.host, port: other.port) else {
            return port == other.port
        }
        return host == address.ipAddress
    }
}
