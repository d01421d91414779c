import LineProtocol
import NIOCore
import Synchronization
import Usage

/// One connection for many tasks. Requests that gather while the event loop is busy are sent in one write.
final class PipelinedConnection: Sendable {
    private struct State {
        var pipeline: PipelineStateMachine<ExchangeWaiter>
        /// Requests that are not written yet.
        var outbound = ByteBuffer()
        var flushIsScheduled = false
        /// The service has answered something other than an error.
        var hasAnswered = false
        /// Why the connection is closed, if that is known.
        var cause: (any Error)?
    }

    enum Event: Sendable {
        /// The first reply that is no error has arrived.
        case answered
        /// A change of a user to whom the connection has subscribed.
        case changed(UsageStatus)
        /// Accepts no more requests.
        case retiring
        /// The client closes it because it is no longer needed.
        case released
        case closed(cause: (any Error)?)
    }

    private let channel: any Channel
    private let state: Mutex<State>
    /// It is called on any thread; with `closed`, on the event loop.
    private let notify: @Sendable (Event) -> Void
    private let deadlineTimer: NIOLoopBound<DeadlineTimer>

    /// Call on the channel's event loop.
    init(_ channel: any Channel, notify: @escaping @Sendable (Event) -> Void) {
        self.channel = channel
        self.notify = notify
        state = Mutex(State(pipeline: PipelineStateMachine(now: .now())))
        deadlineTimer = NIOLoopBound(DeadlineTimer(), eventLoop: channel.eventLoop)
    }

    /// Sends a request and waits for the answer.
    ///
    /// - Parameter id: unique among the connection's requests.
    func exchange(_ command: Command, id: UInt64, deadline: NIODeadline) async -> Exchange {
        await withTaskCancellationHandler {
            // Unsafe: each waiter is taken out of the machine once, and resumed by the code that takes it.
            await withUnsafeContinuation { waiter in
                send(command, waiter, id: id, deadline: deadline)
                // A cancellation before this has not found the request.
                if Task.isCancelled { cancel(id) }
            }
        } onCancel: {
            cancel(id)
        }
    }

    private func send(_ command: Command, _ waiter: ExchangeWaiter, id: UInt64, deadline: NIODeadline) {
        enum Next { case nothing, flush, refused }
        let next = state.withLock { state -> Next in
            guard state.pipeline.append(waiter, id: id, now: .now(), deadline: deadline) else { return .refused }
            command.encode(into: &state.outbound)
            defer { state.flushIsScheduled = true }
            return state.flushIsScheduled ? .nothing : .flush
        }
        switch next {
        case .nothing: break
        case .flush: channel.eventLoop.execute { self.flush() }
        case .refused: waiter.resume(returning: .lost(wasSent: false, cause: nil))
        }
    }

    private func cancel(_ id: UInt64) {
        let (waiter, isDone) = state.withLock { ($0.pipeline.cancel(id), $0.pipeline.isDone) }
        waiter?.resume(returning: .cancelled(wasSent: true))
        if isDone { channel.close(promise: nil) }
    }

    private func flush() {
        let (bytes, earliest) = state.withLock { state in
            let bytes = state.outbound
            state.outbound = ByteBuffer()
            state.flushIsScheduled = false
            state.pipeline.flushed()
            return (bytes, state.pipeline.earliestDeadline)
        }
        channel.writeAndFlush(bytes, promise: nil)
        if let earliest { setTimer(earliest) }
    }

    private func setTimer(_ deadline: NIODeadline) {
        deadlineTimer.value.set(deadline, on: channel.eventLoop) { self.expire() }
    }

    private func expire() {
        let now = NIODeadline.now()
        let (expired, earliest, isDone) = state.withLock { state in
            (state.pipeline.expire(now: now), state.pipeline.earliestDeadline, state.pipeline.isDone)
        }
        for waiter in expired.waiters { waiter.resume(returning: .timedOut) }
        if expired.isSilent {
            close(because: SilentPeer())
        } else if isDone {
            channel.close(promise: nil)
        } else if let earliest {
            // Each check scans all waiting requests, so those that expire within the same millisecond share one.
            setTimer(max(earliest, now + .milliseconds(1)))
        }
    }
}

/// The channel's handler calls these functions on the event loop.
extension PipelinedConnection {
    /// - Parameter replies: in the order of arrival; emptied.
    func received(_ replies: inout [ReceivedReply]) {
        let now = NIODeadline.now()
        var delivered: [(ExchangeWaiter, Int)] = []
        delivered.reserveCapacity(replies.count)
        var unexpected: Int?
        let (isDone, isFirst) = state.withLock { state in
            for index in replies.indices where unexpected == nil {
                // A push message is not the reply to a request.
                if case .message(.usage) = replies[index] { continue }
                switch state.pipeline.received(now: now) {
                case .deliver(let waiter): delivered.append((waiter, index))
                case .ignore: break
                case .unexpected: unexpected = index
                }
            }
            let isFirst = !state.hasAnswered && delivered.contains { !replies[$0.1].isError }
            if isFirst { state.hasAnswered = true }
            return (state.pipeline.isDone, isFirst)
        }
        if isFirst { notify(.answered) }
        // First, so that a waiter that retries at once gets another connection.
        if replies.contains(where: { $0.isDraining }) { retire() }
        for (waiter, index) in delivered { waiter.resume(returning: .reply(replies[index])) }
        for case .message(.usage(_, let status)) in replies { notify(.changed(status)) }
        if let unexpected { close(because: UnexpectedReply(replies[unexpected])) }
        replies.removeAll(keepingCapacity: true)
        if isDone { channel.close(promise: nil) }
    }

    func closed() {
        let (lost, cause) = state.withLock { ($0.pipeline.close(), $0.cause) }
        deadlineTimer.value.cancel()
        // First, so that a waiter that retries at once gets another connection.
        notify(.closed(cause: cause))
        for request in lost {
            request.waiter.resume(returning: .lost(wasSent: request.wasSent, cause: cause))
        }
    }
}

extension PipelinedConnection {
    /// Accepts no more requests; closes when no request waits for an answer.
    func retire() {
        notify(.retiring)
        if state.withLock({ $0.pipeline.retire() }) { channel.close(promise: nil) }
    }

    /// Closes a working connection at once that is no longer needed.
    func release() {
        // First, so that a caller that needs one at once gets another connection.
        notify(.released)
        close()
    }

    /// Closes at once.
    ///
    /// - Parameter cause: for the requests that wait for an answer. Only the first cause counts.
    func close(because cause: (any Error)? = nil) {
        state.withLock { state in
            if state.cause == nil { state.cause = cause }
        }
        channel.close(promise: nil)
    }

    func waitUntilClosed() async {
        try? await channel.closeFuture.get()
    }
}

extension ReceivedReply {
    fileprivate var isError: Bool {
        if case .error = self { true } else { false }
    }

    fileprivate var isDraining: Bool {
        if case .error(let error) = self { error.code == ReplyError.Code.draining.rawValue } else { false }
    }
}

/// One timer for all requests of a connection, at the earliest of their deadlines.
private final class DeadlineTimer {
    private var scheduled: (deadline: NIODeadline, task: Scheduled<Void>)?

    func set(_ deadline: NIODeadline, on loop: any EventLoop, _ body: @escaping @Sendable () -> Void) {
        if let scheduled, scheduled.deadline <= deadline, scheduled.deadline > .now() { return }
        scheduled?.task.cancel()
        scheduled = (deadline, loop.scheduleTask(deadline: deadline, body))
    }

    func cancel() {
        scheduled?.task.cancel()
        scheduled = nil
    }
}

/// A connection received nothing until a request on it timed out.
struct SilentPeer: Error, CustomStringConvertible {
    let description = "the connection received nothing until a request timed out"
}

/// The service sent a reply without a request, usually the reason why it closes the connection.
struct UnexpectedReply: Error, CustomStringConvertible {
    let description: String

    init(_ reply: ReceivedReply) {
        if case .error(let error) = reply {
            description = "the service sent \(error.code): \(error.text)"
        } else {
            description = "the service sent a reply without a request"
        }
    }
}
