import Foundation
import NIOCore
import NIOPosix

/// A readable error of a failed connection. The framework's errors name a system call, and not what to do.
public struct ConnectFailure: Error, CustomStringConvertible {
    public let description: String

    package init(_ error: any Error) {
        description = ConnectFailure.text(for: error)
    }

    /// - Parameter address: precedes the text.
    package init(_ error: any Error, address: String) {
        description = "\(address): \(ConnectFailure.text(for: error))"
    }

    private static func text(for error: any Error) -> String {
        switch error {
        case let error as NIOConnectionError:
            return error.connectionErrors.first.map { text(for: $0.error) } ?? unknownHost
        case is SocketAddressError.UnknownHost: return unknownHost
        case ChannelError.connectTimeout: return "no answer within the timeout; does a firewall drop the connection?"
        case let error as IOError where error.errnoCode == ECONNREFUSED: return "nothing listens there"
        case let error as IOError: return String(cString: strerror(error.errnoCode))
        default: return "\(error)"
        }
    }

    private static let unknownHost = "the host name cannot be resolved"
}

extension ConnectFailure: LocalizedError {
    public var errorDescription: String? { description }
}
