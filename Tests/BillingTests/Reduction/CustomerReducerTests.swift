import TestSupport
import Testing
import Usage

@testable import Billing

/// Compares the reducer with a reference model, on random histories.
@Suite("The customer reducer")
struct CustomerReducerTests {
    private static let histories = 1_000

    private func reduced(_ history: CustomerHistory) -> CustomerState {
        CustomerReducer.reduce(history, at: CustomerHistories.now).simplified(for: history)
    }

    private func modelled(_ history: CustomerHistory, fault: ReferenceCustomer.Fault? = nil) -> CustomerState {
        ReferenceCustomer(history, at: CustomerHistories.now, fault: fault).state.simplified(for: history)
    }

    @Test("equals the reference model", arguments: SeededGenerator.seeds)
    func model(seed: UInt64) {
        print("histories of customers with seed \(seed)")
        var histories = CustomerHistories(seed: seed)
        for number in 0..<CustomerReducerTests.histories {
            let history = histories.next()
            guard reduced(history) != modelled(history) else { continue }
            let smallest = history.shrunk { reduced($0) != modelled($0) }
            Issue.record(
                """
                seed \(seed), history \(number), reducer and model:
                \(smallest.summary)
                \(difference(reduced(smallest), modelled(smallest)))
                """
            )
            return
        }
    }

    @Test("does not depend on the order of arrival", arguments: SeededGenerator.seeds)
    func order(seed: UInt64) {
        print("orders of events with seed \(seed)")
        var histories = CustomerHistories(seed: seed)
        for number in 0..<CustomerReducerTests.histories {
            let history = histories.next()
            var other = history
            other.events = histories.shuffled(history.events)
            guard reduced(history) != reduced(other) else { continue }
            Issue.record(
                """
                seed \(seed), history \(number), in two orders:
                \(history.summary)
                \(difference(reduced(history), reduced(other)))
                """
            )
            return
        }
    }

    @Test("differs from a model with an injected fault", arguments: ReferenceCustomer.Fault.allCases)
    func fault(_ fault: ReferenceCustomer.Fault) {
        let seed = SeededGenerator.newSeed()
        print("histories of customers with seed \(seed)")
        var histories = CustomerHistories(seed: seed)
        for _ in 0..<20_000 {
            let history = histories.next()
            if modelled(history) != modelled(history, fault: fault) { return }
        }
        Issue.record("seed \(seed): no history shows the fault \(fault)")
    }
}
