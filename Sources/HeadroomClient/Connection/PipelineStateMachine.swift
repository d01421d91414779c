import DequeModule
import NIOCore

/// Matches replies to the requests of one connection. Replies arrive in the order of the requests, one each, so the
/// order alone identifies them.
///
/// A cancelled request keeps its slot until its reply has arrived.
struct PipelineStateMachine<Waiter> {
    private enum State {
        /// Accepts requests. Can transition to: retiring, closed.
        case open
        /// Accepts no more requests; replies still arrive. Can transition to: closed.
        case retiring
        case closed
    }

    private struct Slot {
        let id: UInt64
        /// Who awaits the reply; nil after a cancellation or a timeout.
        var waiter: Waiter?
        let sentAt: NIODeadline
        let deadline: NIODeadline
    }

    private var state = State.open
    private var slots: Deque<Slot> = []
    /// The number of slots at the end whose requests are not written yet.
    private var unsent = 0
    /// The number of slots with a waiter.
    private var waiting = 0
    private var lastReplyAt: NIODeadline
    /// No request times out before this. It may belong to an answered request.
    private(set) var earliestDeadline: NIODeadline?

    init(now: NIODeadline) {
        lastReplyAt = now
    }

    var isOpen: Bool { if case .open = state { true } else { false } }

    /// - Returns: false when no more requests are accepted.
    mutating func append(_ waiter: Waiter, id: UInt64, now: NIODeadline, deadline: NIODeadline) -> Bool {
        guard isOpen else { return false }
        slots.append(Slot(id: id, waiter: waiter, sentAt: now, deadline: deadline))
        unsent += 1
        waiting += 1
        earliestDeadline = min(earliestDeadline ?? deadline, deadline)
        return true
    }

    /// All appended requests are written.
    mutating func flushed() {
        unsent = 0
    }

    enum ReplyAction {
        case deliver(Waiter)
        /// The request was cancelled or timed out.
        case ignore
        /// There is no request for it.
        case unexpected
    }

    mutating func received(now: NIODeadline) -> ReplyAction {
        lastReplyAt = now
        guard slots.count > unsent, let slot = slots.popFirst() else { return .unexpected }
        guard let waiter = slot.waiter else { return .ignore }
        waiting -= 1
        return .deliver(waiter)
    }

    /// - Returns: nil when the request was answered, cancelled or timed out before.
    mutating func cancel(_ id: UInt64) -> Waiter? {
        guard let index = slots.firstIndex(where: { $0.id == id }) else { return nil }
        return take(index)
    }

    private mutating func take(_ index: Int) -> Waiter? {
        guard let waiter = slots[index].waiter.take() else { return nil }
        waiting -= 1
        return waiter
    }

    struct Expired {
        var waiters: [Waiter]
        /// Nothing has arrived since one of the expired requests was sent: the service may be unreachable.
        var isSilent: Bool
    }

    /// Takes out the waiters whose deadline has passed.
    mutating func expire(now: NIODeadline) -> Expired {
        var expired = Expired(waiters: [], isSilent: false)
        earliestDeadline = nil
        for index in slots.indices {
            let deadline = slots[index].deadline
            if deadline <= now {
                if let waiter = take(index) { expired.waiters.append(waiter) }
                // This includes cancelled requests: short timeouts of callers must not hide an unreachable service.
                if lastReplyAt <= slots[index].sentAt { expired.isSilent = true }
            } else {
                earliestDeadline = min(earliestDeadline ?? deadline, deadline)
            }
        }
        return expired
    }

    /// Accepts no more requests.
    ///
    /// - Returns: true when no request waits, so that the connection can be closed.
    mutating func retire() -> Bool {
        if case .open = state { state = .retiring }
        return isDone
    }

    /// Whether the connection accepts nothing more and no request waits. Missing replies to cancelled requests do not
    /// keep it open.
    var isDone: Bool {
        if case .retiring = state { waiting == 0 } else { false }
    }

    struct Lost {
        var waiter: Waiter
        /// The service may have received it.
        var wasSent: Bool
    }

    /// The connection has closed.
    mutating func close() -> [Lost] {
        state = .closed
        let sent = slots.count - unsent
        let lost = slots.enumerated().compactMap { index, slot in
            slot.waiter.map { Lost(waiter: $0, wasSent: index < sent) }
        }
        slots = []
        unsent = 0
        waiting = 0
        return lost
    }
}
