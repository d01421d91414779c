import Postgres

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// Wakes a thread that sleeps in poll(), where it also waits for its database socket. A condition variable could not
/// wait for both.
final class WakePipe: Sendable {
    private let readEnd: Int32
    private let writeEnd: Int32

    init() {
        var ends: [Int32] = [-1, -1]
        // This fails only if the process has no file descriptors left when it starts.
        guard pipe(&ends) == 0 else {
            preconditionFailure("pipe() failed with errno \(errno); raise the limit of open files")
        }
        for end in ends {
            _ = fcntl(end, F_SETFL, fcntl(end, F_GETFL) | O_NONBLOCK)
            _ = fcntl(end, F_SETFD, FD_CLOEXEC)
        }
        readEnd = ends[0]
        writeEnd = ends[1]
    }

    deinit {
        close(readEnd)
        close(writeEnd)
    }

    /// Wakes the thread. A failed write is ignored: a full pipe wakes the thread too.
    func wake() {
        var byte: UInt8 = 1
        _ = write(writeEnd, &byte, 1)
    }

    /// Sleeps until `wake`, until `socket` (-1: none) is readable or broken, or until `deadline` (nil: none).
    ///
    /// - Returns: whether the socket is readable or broken. An idle database connection is then closing.
    func sleep(orUntilReadable socket: Int32, until deadline: ContinuousClock.Instant?) -> Bool {
        var entries = (
            pollfd(fd: readEnd, events: Int16(POLLIN), revents: 0),
            pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
        )
        let timeout = deadline.map { SocketWait.milliseconds(until: $0) } ?? -1
        withUnsafeMutablePointer(to: &entries) { entries in
            _ = entries.withMemoryRebound(to: pollfd.self, capacity: 2) { poll($0, 2, timeout) }
        }
        if entries.0.revents != 0 {
            var drained: (UInt64, UInt64) = (0, 0)
            while withUnsafeMutableBytes(of: &drained, { read(readEnd, $0.baseAddress, $0.count) }) == 16 {}
        }
        return entries.1.revents != 0
    }
}
