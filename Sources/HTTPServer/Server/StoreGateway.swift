import Engine
import Synchronization
import Usage

/// Asks the store on behalf of requests that await the outcome.
package final class StoreGateway: Mailbox {
    private struct State {
        var lastSlot: UInt64 = 0
        var waiting: [UInt64: CheckedContinuation<Outcome, Never>] = [:]
    }

    private let store: BatchingEngine
    private let mailbox = Mutex(0)
    private let state = Mutex(State())

    package init(_ store: BatchingEngine) {
        self.store = store
        let number = store.register(self)
        mailbox.withLock { $0 = number }
    }

    /// One request of a user, carried by the user's lane as those of the line protocol are, within the same time.
    package func ask(_ operation: EngineOperation, of user: UserID) async -> Outcome {
        await outcome { address in
            let request = Request(
                user: user,
                operation: operation,
                returnAddress: address,
                deadline: .now + store.configuration.requestTimeout
            )
            return store.enqueue([request], lane: store.lane(of: user))?.1
        }
    }

    /// A question about all users of a period.
    ///
    /// - Parameter timeout: how long somebody waits for it; report-timeout-ms at most.
    package func read(_ reading: Reading, within timeout: Duration = .seconds(3_600)) async -> Outcome {
        await outcome { address in
            let deadline = ContinuousClock.now + min(timeout, store.configuration.reportTimeout)
            return store.reader.enqueue(
                ReadingRequest(reading: reading, returnAddress: address, deadline: deadline)
            )
        }
    }

    /// - Parameter enqueue: returns the reason when the request is refused at once; otherwise an outcome comes.
    private func outcome(_ enqueue: (ReturnAddress) -> EngineError?) async -> Outcome {
        await withCheckedContinuation { continuation in
            let slot = state.withLock { state in
                state.lastSlot += 1
                state.waiting[state.lastSlot] = continuation
                return state.lastSlot
            }
            let address = ReturnAddress(mailbox: mailbox.withLock { $0 }, connection: 0, slot: slot)
            if let refusal = enqueue(address) { settle(slot, .failure(refusal)) }
        }
    }

    private func settle(_ slot: UInt64, _ outcome: Outcome) {
        state.withLock { $0.waiting.removeValue(forKey: slot) }?.resume(returning: outcome)
    }

    package func deliver(_ completions: [Completion]) {
        for completion in completions { settle(completion.returnAddress.slot, completion.outcome) }
    }

    /// Nobody here watches.
    package func publish(_ publications: [Publication]) {}
}
