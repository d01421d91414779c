import Hummingbird
import NIOCore
import Synchronization

/// Detects that the peer has closed its connection. A client that closes only its sending side and waits for the
/// response looks the same, and counts as closed.
final class PeerCloseHandler: ChannelInboundHandler {
    typealias InboundIn = NIOAny

    let signal = PeerCloseSignal()

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .some(ChannelEvent.inputClosed) = event as? ChannelEvent { signal.close() }
        context.fireUserInboundEventTriggered(event)
    }

    func channelInactive(context: ChannelHandlerContext) {
        signal.close()
        context.fireChannelInactive()
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        signal.close()
    }
}

/// Cancels work for a peer that has closed its connection.
final class PeerCloseSignal: Sendable {
    private enum State {
        /// Can transition to: closed.
        case open(onClose: (@Sendable () -> Void)?)
        /// Final.
        case closed
    }

    private let state = Mutex(State.open(onClose: nil))

    var isClosed: Bool {
        state.withLock { if case .closed = $0 { true } else { false } }
    }

    func close() {
        let onClose = state.withLock { state -> (@Sendable () -> Void)? in
            guard case .open(let onClose) = state else { return nil }
            state = .closed
            return onClose
        }
        onClose?()
    }

    /// Performs work that is cancelled when the peer closes the connection, because its result could not be delivered.
    ///
    /// A connection's requests are answered one after the other, so only one such work runs at a time.
    ///
    /// - Throws: the work's error, or `Problem.peerClosed` if the peer has closed before the work starts or when it
    ///   fails.
    func cancellingOnClose<Value: Sendable>(
        _ work: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        if isClosed { throw Problem.peerClosed }
        let task = Task(operation: work)
        setOnClose { task.cancel() }
        defer { setOnClose(nil) }
        let result = await withTaskCancellationHandler {
            await task.result
        } onCancel: {
            task.cancel()
        }
        if case .failure = result, isClosed { throw Problem.peerClosed }
        return try result.get()
    }

    private func setOnClose(_ onClose: (@Sendable () -> Void)?) {
        let isOpen = state.withLock { state in
            guard case .open = state else { return false }
            state = .open(onClose: onClose)
            return true
        }
        if !isOpen { onClose?() }
    }
}

extension HTTPContext {
    /// Performs a request's work, which is cancelled when the peer closes the connection.
    ///
    /// - Throws: as `PeerCloseSignal.cancellingOnClose`.
    func cancellingOnPeerClose<Value: Sendable>(
        _ work: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        guard let channel else { return try await work() }
        let signal = try await channel.eventLoop.submit {
            // A connection that has ended has no handlers.
            try? channel.pipeline.syncOperations.handler(type: PeerCloseHandler.self).signal
        }.get()
        guard let signal else { return try await work() }
        return try await signal.cancellingOnClose(work)
    }
}

extension Problem {
    /// Counted in metrics, never received by the peer.
    static let peerClosed = Problem(
        .init(code: 499, reasonPhrase: "Client Closed Request"),
        code: "CLOSED",
        "the connection was closed before the response; keep it open and send the request again"
    )
}
