import NIOCore
import TransportSecurity

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// A port that cannot be opened.
package struct PortUnavailable: Error, CustomStringConvertible {
    package let description: String

    /// - Parameters:
    ///   - error: NIO's.
    ///   - setting: the setting of the address.
    package init(_ error: any Error, address: ListenAddress, setting: SettingDefinition) {
        description = """
            \(setting.name)=\(address) cannot be opened: \(PortUnavailable.reason(error, port: address.port)); or choose another \
            address (--\(setting.name), \(setting.environmentVariable))
            """
    }

    private static func reason(_ error: any Error, port: Int) -> String {
        switch (error as? IOError)?.errnoCode {
        case EADDRINUSE: "another program uses that port; end it (ss -ltnp 'sport = :\(port)' shows which it is)"
        case EADDRNOTAVAIL: "this machine does not have that address; correct it"
        case EACCES: "this account may not open ports below 1024; run as one that may"
        default: "\(ConnectFailure(error)); correct it"
        }
    }
}
