import Foundation
import NIOCore
import NIOPosix

/// Why a connection failed, in words. The framework's errors name a system call, and not what to do.
public struct ConnectFailure: Error, CustomStringConvertible {
    public let description: String

    package init(_ error: any Error) {
        description = ConnectFailure.words(for: error)
    }

    /// - Parameter address: the address, put before the words.
    package init(_ error: any Error, address: String) {
        description = "\(address): \(ConnectFailure.words(for: error))"
    }

    private static func words(for error: any Error) -> String {
        switch error {
        case let error as NIOConnectionError:
            return error.connectionErrors.first.map { words(for: $0.error) } ?? unknownHost
        case is SocketAddressError.UnknownHost: return unknownHost
        case ChannelError.connectTimeout: return "no answer came in time; does a firewall drop the connection?"
        case let error as IOError where error.errnoCode == ECONNREFUSED: return "nothing listens there"
        case let error as IOError: return String(cString: strerror(error.errnoCode))
        default: return "\(error)"
        }
    }

    private static let unknownHost = "no machine of that name is known"
}

extension ConnectFailure: LocalizedError {
    public var errorDescription: String? { description }
}
