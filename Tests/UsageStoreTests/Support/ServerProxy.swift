import Foundation
import PostgresTestSupport
import Synchronization

/// Stands between the store and PostgreSQL, forwards bytes, and cuts a connection at the moment a test asks for.
///
/// @unchecked Sendable: the listening socket is set once; everything that changes is behind the lock. The file
/// descriptors of a connection belong to that connection's thread, which alone closes them.
final class ServerProxy: @unchecked Sendable {
    enum Cut: Sendable {
        /// When the statement with these bytes comes: the server never sees it.
        case request(String)
        /// After the server has answered it, and is ready for the next: the client never sees that.
        case reply(String)
        /// Right after it was sent: the client sees its connection end, the server does not, and goes on.
        case abandon(String)

        var needle: String {
            switch self {
            case .request(let needle), .reply(let needle), .abandon(let needle): needle
            }
        }
    }

    private struct State {
        var armed: Cut?
        var cuts = 0
        var refuses = false
        var refusesAfterCut = false
        var isClosed = false
        var abandonsAll = false
    }

    private let directory: TemporaryDirectory
    private let listener: Int32
    private let serverPath: String
    private let state = Mutex(State())
    /// Leads through this proxy.
    let conninfo: String

    init(to conninfo: String) throws {
        directory = try TemporaryDirectory(prefix: "headroom-proxy-")
        guard let host = conninfo.split(separator: " ").first(where: { $0.hasPrefix("host=") })?.dropFirst(5) else {
            throw POSIXError(.EINVAL)
        }
        serverPath = host + "/.s.PGSQL.5432"
        self.conninfo = conninfo.replacing("host=\(host)", with: "host=\(directory.path)")
        listener = try UnixSocket.listen(at: directory.path + "/.s.PGSQL.5432")
        Thread(block: accept).start()
    }

    // MARK: What a test asks

    /// Cuts once, at the next statement that contains the cut's text.
    func arm(_ cut: Cut) {
        state.withLock { $0.armed = cut }
    }

    /// How often it has cut.
    var cuts: Int { state.withLock { $0.cuts } }

    /// While true, new connections are closed at once.
    var refuses: Bool {
        get { state.withLock { $0.refuses } }
        set { state.withLock { $0.refuses = newValue } }
    }

    /// Whether `refuses` becomes true with the next cut.
    var refusesAfterCut: Bool {
        get { state.withLock { $0.refusesAfterCut } }
        set { state.withLock { $0.refusesAfterCut = newValue } }
    }

    /// The clients of all connections see them end now; the server does not.
    func abandonAll() {
        state.withLock { $0.abandonsAll = true }
    }

    func close() {
        state.withLock { $0.isClosed = true }
        shutdown(listener, Int32(SHUT_RDWR))
    }

    // MARK: Threads

    private func accept() {
        while true {
            let client = Glibc.accept(listener, nil, nil)
            guard client >= 0 else { break }
            guard !refuses, let server = try? UnixSocket.connect(to: serverPath) else {
                Glibc.close(client)
                continue
            }
            state.withLock { $0.abandonsAll = false }
            Thread { self.forward(client, server) }.start()
        }
        Glibc.close(listener)
    }

    private enum Phase {
        case forwarding
        /// Bytes of the server are dropped until it is ready for the next statement; then both sides are cut.
        case swallowing
        /// The client is gone; the server's bytes are dropped until it is ready, or gone.
        case abandoned
    }

    private func forward(_ client: Int32, _ server: Int32) {
        var client = client
        var phase = Phase.forwarding
        var recent: [UInt8] = []
        var replies = ReplyScanner()
        defer {
            if client >= 0 { Glibc.close(client) }
            Glibc.close(server)
        }
        while !state.withLock({ $0.isClosed }) {
            if phase == .forwarding, state.withLock({ $0.abandonsAll }) {
                Glibc.close(client)
                client = -1
                phase = .abandoned
                state.withLock { $0.cuts += 1 }
            }
            guard let readable = UnixSocket.wait(client, server) else { continue }
            if readable.first {
                guard let bytes = UnixSocket.read(client) else { return }
                recent = recent.suffix(64) + bytes
                let cut = takeCut(in: recent)
                if case .request = cut { return }
                guard UnixSocket.write(bytes, to: server) else { return }
                switch cut {
                case .reply: phase = .swallowing
                case .abandon:
                    Glibc.close(client)
                    client = -1
                    phase = .abandoned
                case .request, nil: break
                }
            }
            if readable.second {
                guard let bytes = UnixSocket.read(server) else { return }
                switch phase {
                case .forwarding: guard UnixSocket.write(bytes, to: client) else { return }
                case .swallowing, .abandoned: if replies.isReady(after: bytes) { return }
                }
            }
        }
    }

    private func takeCut(in bytes: [UInt8]) -> Cut? {
        state.withLock { state in
            guard let cut = state.armed, bytes.firstRange(of: Array(cut.needle.utf8)) != nil else { return nil }
            state.armed = nil
            state.cuts += 1
            state.refuses = state.refuses || state.refusesAfterCut
            return cut
        }
    }
}

/// Finds ReadyForQuery in what a server says, from a message's first byte on.
private struct ReplyScanner {
    private var pending: [UInt8] = []

    mutating func isReady(after bytes: [UInt8]) -> Bool {
        pending += bytes
        while pending.count >= 5 {
            let length = pending[1...4].reduce(0) { $0 << 8 | Int($1) }
            if pending[0] == UInt8(ascii: "Z") { return true }
            guard pending.count > length else { return false }
            pending.removeFirst(length + 1)
        }
        return false
    }
}
