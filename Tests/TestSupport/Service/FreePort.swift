import Foundation
import NIOCore
import NIOPosix

/// Finds a port of 127.0.0.1 on which nobody listens, nor will while a test needs it so: before a program starts there, or while
/// it is down.
///
/// The kernel takes the ports of outgoing connections, and the free ports that it picks for listeners, from one range. This port
/// is below that range.
public func freePort() async throws -> Int {
    let range = try String(contentsOfFile: "/proc/sys/net/ipv4/ip_local_port_range", encoding: .utf8)
    let lowest = range.split(whereSeparator: \.isWhitespace).first.flatMap { Int($0) } ?? 0
    let bootstrap = ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
    while true {
        // Not from a seed: test runs at the same time may have the same one, and would look at the same ports.
        let port = lowest > 12_000 ? Int.random(in: 10_000..<lowest) : 0
        do {
            let channel = try await bootstrap.bind(host: "127.0.0.1", port: port).get()
            let found = channel.localAddress?.port
            try await channel.close()
            if let found { return found }
        } catch let error as IOError where error.errnoCode == EADDRINUSE {
            continue
        }
    }
}
