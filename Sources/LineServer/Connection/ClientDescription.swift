import LineProtocol
import NIOCore

/// What `CLIENT` says about a connection: what its peer has told, and its addresses.
struct ClientDescription {
    var name = ""
    private var libraryName = ""
    private var libraryVersion = ""
    /// The addresses of the peer and of this end, once the connection is open.
    var addresses: (peer: SocketAddress?, own: SocketAddress?) = (nil, nil)

    /// - Parameters:
    ///   - id: as in the answer to HELLO.
    ///   - version: of RESP.
    ///   - user: the name of the peer's token; nil without one.
    mutating func reply(
        to request: ClientRequest,
        id: Int,
        version: Int,
        user: String?,
        subscriptions: Int
    ) -> Reply {
        switch request {
        case .id: return .integer(id)
        case .name: return name.isEmpty ? .null(version: version) : .bulk(EchoedBytes(name))
        case .setName(let name): self.name = name
        case .setLibraryName(let name): libraryName = name
        case .setLibraryVersion(let version): libraryVersion = version
        case .info, .list:
            return .bulk(EchoedBytes(line(id: id, version: version, user: user, subscriptions: subscriptions)))
        case .accepted: break
        }
        return .ok
    }

    /// All fields of Redis's line, because some libraries require them. Those without a meaning here are 0.
    private func line(id: Int, version: Int, user: String?, subscriptions: Int) -> String {
        let addresses = "addr=\(text(addresses.peer)) laddr=\(text(addresses.own))"
        let buffers = ["qbuf", "qbuf-free", "argv-mem", "multi-mem", "rbs", "rbp", "obl", "oll", "omem", "tot-mem"]
        return """
            id=\(id) \(addresses) fd=0 name=\(name) age=0 idle=0 flags=\(subscriptions > 0 ? "P" : "N") db=0 \
            sub=\(subscriptions) psub=0 ssub=0 multi=-1 watch=0 \(buffers.map { "\($0)=0" }.joined(separator: " ")) \
            events=r cmd=client user=\(user ?? "default") redir=-1 resp=\(version) lib-name=\(libraryName) \
            lib-ver=\(libraryVersion)

            """
    }

    private func text(_ address: SocketAddress?) -> String {
        guard let ip = address?.ipAddress, let port = address?.port else { return "" }
        return ip.contains(":") ? "[\(ip)]:\(port)" : "\(ip):\(port)"
    }
}

extension EchoedBytes {
    /// Redis's own form for an array. A person's line gets a line, and has no other bytes.
    func reply(toArray: Bool) -> Reply { toArray ? .bulk(self) : .text(text) }
}
