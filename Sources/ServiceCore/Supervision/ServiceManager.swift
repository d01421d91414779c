#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// Tells systemd the state of the service (sd_notify(3)).
public struct ServiceManager: Sendable {
    /// A path, or an abstract address that begins with `@`.
    private let socketPath: String
    /// The service is killed if it reports nothing for this long; nil: never.
    let watchdogTimeout: Duration?

    /// - Returns: nil if no service manager wants to know, as on systems without systemd.
    public init?(environment: [String: String]) {
        #if os(Linux)
        guard let path = environment["NOTIFY_SOCKET"], path.hasPrefix("/") || path.hasPrefix("@") else { return nil }
        socketPath = path
        let isForThisProcess = environment["WATCHDOG_PID"].map { $0 == "\(getpid())" } ?? true
        let microseconds = environment["WATCHDOG_USEC"].flatMap { Int64($0) } ?? 0
        watchdogTimeout = isForThisProcess && microseconds > 0 ? .microseconds(microseconds) : nil
        #else
        return nil
        #endif
    }

    /// Variables that are for this process only: programs that it starts must not report its state.
    public static let variables = [
        "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC",
    ]

    func ready() { send("READY=1") }

    func stopping() { send("STOPPING=1") }

    func alive() { send("WATCHDOG=1") }

    /// Reports that a reload has begun; `ready` ends it.
    func reloading() {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        send("RELOADING=1\nMONOTONIC_USEC=\(time.tv_sec * 1_000_000 + time.tv_nsec / 1_000)")
    }

    /// Does not wait. Without a receiver the state is of no interest.
    private func send(_ state: String) {
        #if os(Linux)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let path = Array(socketPath.utf8)
        guard path.count < MemoryLayout.size(ofValue: address.sun_path) else { return }
        withUnsafeMutableBytes(of: &address.sun_path) { bytes in
            bytes.copyBytes(from: path)
            // An abstract address begins with a zero byte.
            if path.first == UInt8(ascii: "@") { bytes[0] = 0 }
        }
        let descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return }
        defer { close(descriptor) }
        let size = socklen_t(MemoryLayout<sa_family_t>.size + path.count)
        withUnsafePointer(to: &address) { address in
            address.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                _ = sendto(descriptor, state, state.utf8.count, Int32(MSG_DONTWAIT), address, size)
            }
        }
        #endif
    }
}
