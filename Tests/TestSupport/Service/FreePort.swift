import Foundation
import NIOCore
import NIOPosix
import Synchronization

private let givenPorts = Mutex<Set<Int>>([])

/// Finds a port of 127.0.0.1 that no process uses or is assigned by the kernel: it is below the range from which the
/// kernel chooses ports of outgoing connections and of listeners on port 0.
///
/// No port is given twice: a test that ends a service may expect that nothing answers there. For the same reason the
/// tests in Python take theirs from the upper half of these ports.
public func freePort() async throws -> Int {
    let range = try String(contentsOfFile: "/proc/sys/net/ipv4/ip_local_port_range", encoding: .utf8)
    let lowest = range.split(whereSeparator: \.isWhitespace).first.flatMap { Int($0) } ?? 0
    let ports = 10_000..<max(10_000, (10_000 + lowest) / 2)
    let bootstrap = ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
    while true {
        // Without a seed, because concurrent test runs with the same one would try the same ports.
        let port = lowest > 12_000 ? Int.random(in: ports) : 0
        guard port == 0 || isFirst(port, of: ports.count) else { continue }
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

/// Whether the port was not given before.
private func isFirst(_ port: Int, of count: Int) -> Bool {
    givenPorts.withLock { given in
        // Where there are so few, the oldest are no longer in use.
        if given.count > count / 2 { given.removeAll() }
        return given.insert(port).inserted
    }
}
