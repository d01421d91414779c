import TestSupport
import Testing

@testable import Engine

@Suite("The pause before connecting again")
struct BackoffTests {
    @Test("doubles up to the longest, and is at least half of the step", arguments: 1...20)
    func doubling(seed: UInt64) {
        var backoff = Backoff(first: .milliseconds(50), longest: .seconds(1))
        var generator = SeededGenerator(seed: seed)
        for step in [50, 100, 200, 400, 800, 1_000, 1_000] {
            let pause = backoff.pause(using: &generator)
            #expect(pause <= .milliseconds(step), "seed \(seed)")
            #expect(pause >= .milliseconds(step) / 2, "seed \(seed)")
        }
    }

    @Test("restarts after success")
    func reset() {
        var backoff = Backoff(first: .milliseconds(50), longest: .seconds(1))
        var generator = SystemRandomNumberGenerator()
        for _ in 0..<10 { _ = backoff.pause(using: &generator) }
        backoff.reset()
        #expect(backoff.pause(using: &generator) <= .milliseconds(50))
    }

    @Test("differs between instances that lost the database together")
    func jitter() {
        var generator = SeededGenerator(seed: 1)
        let firsts = (0..<20).map { _ in
            var backoff = Backoff()
            return backoff.pause(using: &generator)
        }
        #expect(Set(firsts).count > 10)
    }
}
