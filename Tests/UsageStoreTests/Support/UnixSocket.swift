import Foundation

/// The few calls that `ServerProxy` needs.
enum UnixSocket {
    static func listen(at path: String) throws -> Int32 {
        let descriptor = try open()
        guard withAddress(path, { bind(descriptor, $0, $1) }) == 0, Glibc.listen(descriptor, 64) == 0,
            // PostgreSQL's libpq may run as another user than the directory's owner.
            chmod(path, 0o777) == 0
        else { throw POSIXError(.EIO) }
        return descriptor
    }

    static func connect(to path: String) throws -> Int32 {
        let descriptor = try open()
        guard withAddress(path, { Glibc.connect(descriptor, $0, $1) }) == 0 else {
            close(descriptor)
            throw POSIXError(.ECONNREFUSED)
        }
        return descriptor
    }

    private static func open() throws -> Int32 {
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        guard descriptor >= 0, fcntl(descriptor, F_SETFD, FD_CLOEXEC) == 0 else { throw POSIXError(.EMFILE) }
        return descriptor
    }

    private static func withAddress(_ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32) -> Int32 {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        return withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(MemoryLayout<sockaddr_un>.size)) }
        }
    }

    /// Which of two descriptors have something to read, or an end; nil when neither has within some milliseconds.
    static func wait(_ first: Int32, _ second: Int32) -> (first: Bool, second: Bool)? {
        var entries = [
            pollfd(fd: first, events: Int16(POLLIN), revents: 0), pollfd(fd: second, events: Int16(POLLIN), revents: 0),
        ]
        guard poll(&entries, 2, 10) > 0 else { return nil }
        return (entries[0].revents != 0, entries[1].revents != 0)
    }

    /// Nil at the end.
    static func read(_ descriptor: Int32) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: 65_536)
        let count = Glibc.read(descriptor, &bytes, bytes.count)
        return count > 0 ? Array(bytes.prefix(count)) : nil
    }

    static func write(_ bytes: [UInt8], to descriptor: Int32) -> Bool {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            guard count > 0 else { return false }
            rest = rest.dropFirst(count)
        }
        return true
    }
}
