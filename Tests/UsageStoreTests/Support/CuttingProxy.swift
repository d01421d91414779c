import Foundation
import Synchronization

/// Stands between a store and PostgreSQL, and breaks their connections at an exact place: when the server's reply is
/// there, so what it tells of is committed, and the store has not seen it.
///
/// Two threads per connection, each of which copies one way.
final class CuttingProxy: Sendable {
    private struct State {
        var cutsNextReply = false
        var refuses = false
        var cuts = 0
    }

    private let state = Mutex(State())
    private let listener: Int32
    private let serverPath: String
    /// The store's connection string: the server's with this proxy's directory as its host.
    let conninfo: String

    /// - Parameter conninfo: of a server that listens on a Unix socket.
    init(_ conninfo: String, directory: String) throws {
        guard let host = conninfo.split(separator: " ").first(where: { $0.hasPrefix("host=") })?.dropFirst(5),
            let port = conninfo.split(separator: " ").first(where: { $0.hasPrefix("port=") })?.dropFirst(5)
        else { throw POSIXError(.EINVAL) }
        let unquoted = host.filter { $0 != "'" }
        serverPath = "\(unquoted)/.s.PGSQL.\(port)"
        self.conninfo = conninfo.replacing("host=\(host)", with: "host=\(directory)")
        listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        guard listener >= 0,
            CuttingProxy.withAddress("\(directory)/.s.PGSQL.\(port)", { bind(listener, $0, $1) }) == 0,
            listen(listener, 16) == 0
        else { throw POSIXError(.EIO) }
        Thread.detachNewThread { self.acceptConnections() }
    }

    /// Connections that were broken.
    var cuts: Int { state.withLock { $0.cuts } }

    /// Breaks the connection on which the next reply arrives, instead of passing it on.
    ///
    /// - Parameter thenRefuses: nobody is let in again before `letIn()`.
    func cutNextReply(thenRefuses: Bool = false) {
        state.withLock {
            $0.cutsNextReply = true
            $0.refuses = false
        }
        refusesAfterCut.withLock { $0 = thenRefuses }
    }

    func letIn() {
        state.withLock { $0.refuses = false }
    }

    /// Ends the thread that accepts; connections end with the store.
    func close() {
        shutdown(listener, Int32(SHUT_RDWR))
    }

    private let refusesAfterCut = Mutex(false)

    private func acceptConnections() {
        while true {
            let client = accept(listener, nil, nil)
            guard client >= 0 else {
                Glibc.close(listener)
                return
            }
            let server = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
            guard !state.withLock({ $0.refuses }),
                CuttingProxy.withAddress(serverPath, { connect(server, $0, $1) }) == 0
            else {
                Glibc.close(client)
                Glibc.close(server)
                continue
            }
            let pair = Pair(client: client, server: server)
            Thread.detachNewThread { self.copy(from: pair.client, to: pair.server, pair, isReply: false) }
            Thread.detachNewThread { self.copy(from: pair.server, to: pair.client, pair, isReply: true) }
        }
    }

    /// Closes both descriptors when both directions are done with them.
    private final class Pair: Sendable {
        let client: Int32
        let server: Int32

        init(client: Int32, server: Int32) {
            self.client = client
            self.server = server
        }

        func end() {
            shutdown(client, Int32(SHUT_RDWR))
            shutdown(server, Int32(SHUT_RDWR))
        }

        deinit {
            Glibc.close(client)
            Glibc.close(server)
        }
    }

    private func copy(from source: Int32, to target: Int32, _ pair: Pair, isReply: Bool) {
        defer { pair.end() }
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = recv(source, &buffer, buffer.count, 0)
            guard count > 0, !(isReply && cutsNow()) else { return }
            var sent = 0
            while sent < count {
                let written = buffer.withUnsafeBytes {
                    send(target, $0.baseAddress?.advanced(by: sent), count - sent, Int32(MSG_NOSIGNAL))
                }
                guard written > 0 else { return }
                sent += written
            }
        }
    }

    private func cutsNow() -> Bool {
        state.withLock { state in
            guard state.cutsNextReply else { return false }
            state.cutsNextReply = false
            state.refuses = refusesAfterCut.withLock { $0 }
            state.cuts += 1
            return true
        }
    }

    private static func withAddress(_ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32) -> Int32 {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let bytes = Array(path.utf8CString)
        precondition(bytes.count <= MemoryLayout.size(ofValue: address.sun_path), "the path is too long for a socket")
        withUnsafeMutableBytes(of: &address.sun_path) { target in
            bytes.withUnsafeBytes { target.copyMemory(from: $0) }
        }
        return withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
    }
}
