import Engine
import Synchronization
import Tracing
import Usage

/// Submits requests to the engine and awaits their outcomes.
package final class EngineClient: Mailbox {
    private struct State {
        var lastSlot: UInt64 = 0
        var pending: [UInt64: CheckedContinuation<Outcome, Never>] = [:]
    }

    private let engine: BatchingEngine
    private let mailboxIndex = Mutex(0)
    private let state = Mutex(State())

    package init(_ engine: BatchingEngine) {
        self.engine = engine
        let index = engine.register(self)
        mailboxIndex.withLock { $0 = index }
    }

    /// Performs an operation in the user's lane, with the request timeout of the line protocol. It belongs to the
    /// task's trace, if there is one.
    package func perform(_ operation: EngineOperation, for user: UserID) async -> Outcome {
        let traces = engine.traces
        let context = traces == nil ? nil : InstrumentationContext.current
        var traced: ReturnAddress?
        let outcome = await outcome { address in
            if let context {
                traces?.begin(address, in: context)
                traced = address
            }
            let request = Request(
                user: user,
                operation: operation,
                returnAddress: address,
                deadline: Deadline(.now + engine.configuration.requestTimeout)
            )
            return engine.enqueue([request], lane: engine.routes.lane(of: user))?.1
        }
        if let traced { traces?.end(traced) }
        return outcome
    }

    /// Reports on all users of a period.
    ///
    /// - Parameter timeout: at most the setting report-timeout-ms.
    package func report(_ query: ReportQuery, within timeout: Duration = .seconds(3_600)) async -> Outcome {
        await outcome { address in
            let deadline = ContinuousClock.now + min(timeout, engine.configuration.reportTimeout)
            return engine.reports.enqueue(
                ReportRequest(query: query, returnAddress: address, deadline: deadline)
            )
        }
    }

    /// - Parameter enqueue: returns an error if the request is refused; otherwise the outcome is delivered later.
    private func outcome(_ enqueue: (ReturnAddress) -> EngineError?) async -> Outcome {
        await withCheckedContinuation { continuation in
            let slot = state.withLock { state in
                state.lastSlot += 1
                state.pending[state.lastSlot] = continuation
                return state.lastSlot
            }
            let address = ReturnAddress(mailboxIndex: mailboxIndex.withLock { $0 }, connection: 0, slot: slot)
            if let error = enqueue(address) { complete(slot, .failure(error)) }
        }
    }

    private func complete(_ slot: UInt64, _ outcome: Outcome) {
        state.withLock { $0.pending.removeValue(forKey: slot) }?.resume(returning: outcome)
    }

    package func deliver(_ completions: [Completion]) {
        for completion in completions { complete(completion.returnAddress.slot, completion.outcome) }
    }

    /// This client has no subscriptions.
    package func publish(_ publications: [Publication]) {}
}
