import Dispatch
import Synchronization
import TestSupport
import Testing

@testable import Engine

/// Stores each outcome until the test awaits it, and reports a second one for the same request.
final class CollectingMailbox: Mailbox {
    private struct State {
        var outcomes: [UInt64: Outcome] = [:]
        var waiters: [UInt64: CheckedContinuation<Outcome?, Never>] = [:]
        var completed: Set<UInt64> = []
        var deliveries = 0
        var publications: [Publication] = []
    }

    private let state = Mutex(State())

    var deliveries: Int { state.withLock { $0.deliveries } }

    func deliver(_ completions: [Completion]) {
        let resumed = state.withLock { state -> [(CheckedContinuation<Outcome?, Never>, Outcome)] in
            state.deliveries += 1
            var resumed: [(CheckedContinuation<Outcome?, Never>, Outcome)] = []
            for completion in completions {
                let slot = completion.returnAddress.slot
                if !state.completed.insert(slot).inserted {
                    Issue.record("slot \(slot) was answered twice, then with \(completion.outcome)")
                }
                if let waiter = state.waiters.removeValue(forKey: slot) {
                    resumed.append((waiter, completion.outcome))
                } else {
                    state.outcomes[slot] = completion.outcome
                }
            }
            return resumed
        }
        for (waiter, outcome) in resumed { waiter.resume(returning: outcome) }
    }

    func publish(_ publications: [Publication]) { state.withLock { $0.publications += publications } }

    /// All publications so far, in order.
    var publications: [Publication] { state.withLock { $0.publications } }

    /// The outcome of a request; nil if none arrives.
    func outcome(of slot: UInt64) async -> Outcome? {
        // A request's deadline is at most `waitLimit` away, and its outcome arrives soon after.
        DispatchQueue.global().asyncAfter(deadline: .now() + .seconds(2 * Int(waitLimit.components.seconds))) {
            self.state.withLock { $0.waiters.removeValue(forKey: slot) }?.resume(returning: nil)
        }
        return await withCheckedContinuation { continuation in
            let early = state.withLock { state -> Outcome? in
                if let outcome = state.outcomes.removeValue(forKey: slot) { return outcome }
                state.waiters[slot] = continuation
                return nil
            }
            if let early { continuation.resume(returning: early) }
        }
    }

    /// Whether the outcome has arrived and is not awaited yet.
    func hasOutcome(of slot: UInt64) -> Bool { state.withLock { $0.outcomes[slot] != nil } }
}
