import NIOCore

/// The state of one connection through a proxy, without I/O or a clock: the proxy executes its actions.
struct ProxiedConnection {
    enum End {
        case client, server
    }

    struct Chunk {
        var bytes: ByteBuffer
        /// When to send the chunk; nil is immediately.
        var due: NIODeadline?
    }

    /// Sends chunks to the other end, then closes ends.
    struct Action {
        var chunks: [Chunk] = []
        var closes: [End] = []
        var isCut = false

        static let cut = Action(closes: [.client, .server], isCut: true)
    }

    private let faults: Proxy.Faults
    private var generator: SeededGenerator
    /// The bytes until a cut, in both directions together; nil is no cut.
    private var bytesLeft: Int?
    /// When the last chunk from each end is due. Later chunks are not sent before it.
    private var latestDue: [End: NIODeadline] = [:]
    /// The last bytes of the client, because the text of a cut may arrive in two parts.
    private var recent: [UInt8] = []
    /// Set when the client must not receive more answers: they are dropped until the server is ready.
    private var droppedReply: ReplyScanner?

    init(_ faults: Proxy.Faults, seed: UInt64) {
        self.faults = faults
        generator = SeededGenerator(seed: seed)
        bytesLeft = faults.cutAfterBytes.map { Int.random(in: $0, using: &generator) }
    }

    /// - Parameter armed: the cut that a test has armed; nil afterwards if this connection was cut.
    mutating func received(_ bytes: ByteBuffer, from end: End, armed: inout Proxy.Cut?, now: NIODeadline) -> Action {
        if end == .server, droppedReply != nil {
            return Action(closes: droppedReply?.isReady(after: bytes) == true ? [.client, .server] : [])
        }
        guard end == .client, let cut = takeCut(&armed, in: bytes) else { return pass(bytes, from: end, now) }
        if case .request = cut { return .cut }
        var action = pass(bytes, from: end, now)
        droppedReply = ReplyScanner()
        if case .abandon = cut { action.closes.append(.client) }
        action.isCut = true
        return action
    }

    /// Closes the client's end, and keeps the server's end open.
    mutating func abandon() -> Action {
        guard droppedReply == nil else { return Action() }
        droppedReply = ReplyScanner()
        return Action(closes: [.client], isCut: true)
    }

    /// Closes the other end of a closed connection, unless the server still has to answer an abandoned request.
    func ended(_ end: End) -> Action {
        switch end {
        case .client: Action(closes: droppedReply == nil ? [.server] : [])
        case .server: Action(closes: [.client])
        }
    }

    private mutating func takeCut(_ armed: inout Proxy.Cut?, in bytes: ByteBuffer) -> Proxy.Cut? {
        let sent = recent + bytes.readableBytesView
        let before = recent.count
        recent = sent.suffix(64)
        guard let cut = armed, let match = sent.ranges(of: cut.text.utf8).last, match.upperBound > before else {
            return nil
        }
        armed = nil
        return cut
    }

    private mutating func pass(_ bytes: ByteBuffer, from end: End, _ now: NIODeadline) -> Action {
        var rest = bytes
        var action = Action()
        while rest.readableBytes > 0 {
            let size = faults.chunkBytes.map { Int.random(in: $0, using: &generator) } ?? rest.readableBytes
            guard let chunk = rest.readSlice(length: min(size, rest.readableBytes)) else { break }
            if let left = bytesLeft {
                bytesLeft = left - chunk.readableBytes
                guard left > chunk.readableBytes else {
                    action.closes = [.client, .server]
                    action.isCut = true
                    return action
                }
            }
            action.chunks.append(Chunk(bytes: chunk, due: due(from: end, now)))
        }
        return action
    }

    private mutating func due(from end: End, _ now: NIODeadline) -> NIODeadline? {
        guard let range = faults.delayMilliseconds else { return nil }
        let due = max(latestDue[end] ?? now, now) + .milliseconds(Int64.random(in: range, using: &generator))
        latestDue[end] = due
        return due
    }
}

/// Finds the message ReadyForQuery in the bytes from PostgreSQL.
private struct ReplyScanner {
    private var pending = ByteBuffer()

    mutating func isReady(after bytes: ByteBuffer) -> Bool {
        pending.writeImmutableBuffer(bytes)
        // A message is its type, the length including these four bytes, and the rest.
        while let type = pending.getInteger(at: pending.readerIndex, as: UInt8.self),
            let length = pending.getInteger(at: pending.readerIndex + 1, as: UInt32.self)
        {
            if type == UInt8(ascii: "Z") { return true }
            guard pending.readSlice(length: 1 + Int(length)) != nil else { return false }
        }
        return false
    }
}
