import Hummingbird
import NIOCore
import Synchronization

/// Notices when a connection's peer is gone. A client that gives up closes its sending side. A client that closes it and
/// still waits for the answer looks the same, and counts as gone.
final class PeerWatch: ChannelInboundHandler {
    typealias InboundIn = NIOAny

    let presence = PeerPresence()

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .some(ChannelEvent.inputClosed) = event as? ChannelEvent { presence.end() }
        context.fireUserInboundEventTriggered(event)
    }

    func channelInactive(context: ChannelHandlerContext) {
        presence.end()
        context.fireChannelInactive()
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        presence.end()
    }
}

/// Whether the peer of one connection is there.
final class PeerPresence: Sendable {
    private enum State {
        /// Can transition to: gone.
        case here(whenGone: (@Sendable () -> Void)?)
        /// Final.
        case gone
    }

    private let state = Mutex(State.here(whenGone: nil))

    var isGone: Bool {
        state.withLock { if case .gone = $0 { true } else { false } }
    }

    func end() {
        let whenGone = state.withLock { state -> (@Sendable () -> Void)? in
            guard case .here(let whenGone) = state else { return nil }
            state = .gone
            return whenGone
        }
        whenGone?()
    }

    /// Does work that is cancelled when the peer goes, because its result could not be delivered.
    ///
    /// A connection's requests are answered one after the other, so there is one such work at a time.
    ///
    /// - Throws: what the work throws, or `Problem.peerIsGone` where the peer was gone by then.
    func whileHere<Value: Sendable>(
        _ work: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        let task = Task(operation: work)
        setWhenGone { task.cancel() }
        defer { setWhenGone(nil) }
        let result = await withTaskCancellationHandler {
            await task.result
        } onCancel: {
            task.cancel()
        }
        if case .failure = result, isGone { throw Problem.peerIsGone }
        return try result.get()
    }

    private func setWhenGone(_ whenGone: (@Sendable () -> Void)?) {
        let isHere = state.withLock { state in
            guard case .here = state else { return false }
            state = .here(whenGone: whenGone)
            return true
        }
        if !isHere { whenGone?() }
    }
}

extension HTTPContext {
    /// Does a request's work, which is cancelled when the peer is gone.
    ///
    /// - Throws: as `PeerPresence.whileHere`.
    func whilePeerIsHere<Value: Sendable>(
        _ work: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        guard let channel else { return try await work() }
        let presence = try await channel.eventLoop.submit {
            // There is none where the connection has ended already.
            try? channel.pipeline.syncOperations.handler(type: PeerWatch.self).presence
        }.get()
        guard let presence else { return try await work() }
        return try await presence.whileHere(work)
    }
}

extension Problem {
    /// It is not sent; metrics count it.
    static let peerIsGone = Problem(
        .init(code: 499, reasonPhrase: "Client Closed Request"),
        code: "CLOSED",
        "the connection was closed before the answer; keep it open, and send the request again"
    )
}
