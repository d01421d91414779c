import DequeModule
import NIOCore

/// Who waits for which reply on one connection. Replies come in the order of the requests, each exactly once, so a
/// request's place is all that its reply is found by.
///
/// A request that is given up keeps its place until its reply has come.
struct PipelineStateMachine<Waiter> {
    private enum State {
        /// Takes requests. Can transition to: retiring, closed.
        case open
        /// Takes no more; what was sent is still answered. Can transition to: closed.
        case retiring
        case closed
    }

    private struct Slot {
        let id: UInt64
        /// Nil once it was given up.
        var waiter: Waiter?
        let sentAt: NIODeadline
        let deadline: NIODeadline
    }

    private var state = State.open
    private var slots: Deque<Slot> = []
    /// So many of the last slots have not left for the network.
    private var unsent = 0
    /// So many of the slots have a waiter.
    private var waiting = 0
    private var lastHeardAt: NIODeadline
    /// No request's time is over before; it may be of one that is answered already.
    private(set) var earliestDeadline: NIODeadline?

    init(now: NIODeadline) {
        lastHeardAt = now
    }

    var isOpen: Bool { if case .open = state { true } else { false } }

    /// - Returns: false when no more requests are taken.
    mutating func append(_ waiter: Waiter, id: UInt64, now: NIODeadline, deadline: NIODeadline) -> Bool {
        guard isOpen else { return false }
        slots.append(Slot(id: id, waiter: waiter, sentAt: now, deadline: deadline))
        unsent += 1
        waiting += 1
        earliestDeadline = min(earliestDeadline ?? deadline, deadline)
        return true
    }

    /// All that was appended has left.
    mutating func flushed() {
        unsent = 0
    }

    enum ReplyAction {
        case deliver(Waiter)
        /// Nobody waits for it any more.
        case ignore
        /// Nobody has asked.
        case unexpected
    }

    mutating func received(now: NIODeadline) -> ReplyAction {
        lastHeardAt = now
        guard slots.count > unsent, let slot = slots.popFirst() else { return .unexpected }
        guard let waiter = slot.waiter else { return .ignore }
        waiting -= 1
        return .deliver(waiter)
    }

    /// Gives a request up.
    ///
    /// - Returns: nil when it was answered, or given up, before.
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
        /// Nothing has come since one of them was sent: what else waits there may wait in vain.
        var isSilent: Bool
    }

    /// Gives up what should have been answered by now.
    mutating func expire(now: NIODeadline) -> Expired {
        var expired = Expired(waiters: [], isSilent: false)
        earliestDeadline = nil
        for index in slots.indices {
            let deadline = slots[index].deadline
            if deadline <= now {
                if let waiter = take(index) { expired.waiters.append(waiter) }
                // Also where nobody waits any more: callers who give up sooner must not hide that nobody is there.
                if lastHeardAt <= slots[index].sentAt { expired.isSilent = true }
            } else {
                earliestDeadline = min(earliestDeadline ?? deadline, deadline)
            }
        }
        return expired
    }

    /// Takes no more requests.
    ///
    /// - Returns: true when nobody waits, so that the connection can be closed.
    mutating func retire() -> Bool {
        if case .open = state { state = .retiring }
        return isDone
    }

    /// Nobody waits on a connection that takes nothing more. Replies that are due to nobody would keep it open for ever
    /// where they never come.
    var isDone: Bool {
        if case .retiring = state { waiting == 0 } else { false }
    }

    struct Lost {
        var waiter: Waiter
        /// The service may have read it.
        var wasSent: Bool
    }

    /// The connection has ended.
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
