import TestSupport
import Testing

@testable import Billing

@Suite("A customer of a store")
struct PaymentSimulationTests {
    private static let histories = 300

    @Test("gets one allowance for each period that was paid, and not one more", arguments: SeededGenerator.seeds)
    func ledger(seed: UInt64) {
        print("payments with seed \(seed)")
        for number in 0..<PaymentSimulationTests.histories {
            let history = PaymentSimulation(SeededGenerator(seed: seed &* 100_000 &+ UInt64(number)))
            do {
                try history.check()
            } catch {
                Issue.record("seed \(seed), history \(number): \(error)")
                return
            }
        }
    }
}
