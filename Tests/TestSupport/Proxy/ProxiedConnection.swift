import NIOCore

/// What a proxy does with the bytes of one connection. It has neither I/O nor a clock: the proxy runs its actions.
struct ProxiedConnection {
    enum End {
        case client, server
    }

    struct Piece {
        var bytes: ByteBuffer
        /// Nil is at once.
        var due: NIODeadline?
    }

    /// Passes on the pieces to the other end, then closes ends.
    struct Action {
        var pieces: [Piece] = []
        var closes: [End] = []
        var isCut = false

        static let cut = Action(closes: [.client, .server], isCut: true)
    }

    private let faults: Proxy.Faults
    private var generator: SeededGenerator
    /// What may still pass, in both directions together; nil is without an end.
    private var bytesLeft: Int?
    /// When the latest piece from each end is due: nothing overtakes what was sent before.
    private var latestDue: [End: NIODeadline] = [:]
    /// The end of what the client has sent: the text of a cut may come in two parts.
    private var recent: [UInt8] = []
    /// Set once the client is to see no more answers: they are dropped until the server is ready.
    private var droppedReply: ReplyScanner?

    init(_ faults: Proxy.Faults, seed: UInt64) {
        self.faults = faults
        generator = SeededGenerator(seed: seed)
        bytesLeft = faults.cutAfterBytes.map { Int.random(in: $0, using: &generator) }
    }

    /// - Parameter armed: the cut that a test asked for; nil when it was this connection's.
    mutating func received(
        _ bytes: ByteBuffer,
        from end: End,
        armed: inout Proxy.Cut?,
        now: NIODeadline
    ) -> Action {
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

    /// The client is to see the connection end, and the server is not.
    mutating func abandon() -> Action {
        guard droppedReply == nil else { return Action() }
        droppedReply = ReplyScanner()
        return Action(closes: [.client], isCut: true)
    }

    /// One end is closed, and so is the other, but for a server that has still to answer what was abandoned.
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
        guard let cut = armed, let place = sent.ranges(of: cut.text.utf8).last, place.upperBound > before else {
            return nil
        }
        armed = nil
        return cut
    }

    private mutating func pass(_ bytes: ByteBuffer, from end: End, _ now: NIODeadline) -> Action {
        var rest = bytes
        var action = Action()
        while rest.readableBytes > 0 {
            let size = faults.pieceBytes.map { Int.random(in: $0, using: &generator) } ?? rest.readableBytes
            guard let piece = rest.readSlice(length: min(size, rest.readableBytes)) else { break }
            if let left = bytesLeft {
                bytesLeft = left - piece.readableBytes
                guard left > piece.readableBytes else {
                    action.closes = [.client, .server]
                    action.isCut = true
                    return action
                }
            }
            action.pieces.append(Piece(bytes: piece, due: due(from: end, now)))
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

/// Finds ReadyForQuery in what PostgreSQL sends, from a message's first byte on.
private struct ReplyScanner {
    private var pending = ByteBuffer()

    mutating func isReady(after bytes: ByteBuffer) -> Bool {
        pending.writeImmutableBuffer(bytes)
        // A message is its type, the length of the rest with these four bytes, and the rest.
        while let type = pending.getInteger(at: pending.readerIndex, as: UInt8.self),
            let length = pending.getInteger(at: pending.readerIndex + 1, as: UInt32.self)
        {
            if type == UInt8(ascii: "Z") { return true }
            guard pending.readSlice(length: 1 + Int(length)) != nil else { return false }
        }
        return false
    }
}
