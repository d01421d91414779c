import Foundation
import NIOCore
import NIOPosix

/// Finds a port of 127.0.0.1 that no process uses or is assigned by the kernel: it is below the range from which the
/// kernel chooses ports of outgoing connections and of listeners on port 0.
public func freePort() async throws -> Int {
    let range = try String(contentsOfFile: "/proc/sys/net/ipv4/ip_local_port_range", encoding: .utf8)
    let lowest = range.split(whereSeparator: \.isWhitespace).first.flatMap { Int($0) } ?? 0
    let bootstrap = ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
    while true {
        // Without a seed, because concurrent test runs with the same one would try the same ports.
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
