import Foundation

/// SplitMix64 (Steele, Lea and Flood): the same numbers for the same seed, so that a test that prints its seed can be run
/// again.
public struct SeededGenerator: RandomNumberGenerator, Sendable {
    public static let seeds = seeds(always: [1, 2, 3])

    /// Fixed seeds, and one that is new in each run; a test takes them as its argument, so a failure prints its own.
    ///
    /// `HEADROOM_TEST_SEEDS` replaces them all: `7`, or `100-199`.
    public static func seeds(always: [UInt64]) -> [UInt64] {
        chosen ?? always + [.random(in: 1_000 ... .max)]
    }

    /// For a test that takes one seed, which it prints.
    public static func newSeed() -> UInt64 {
        chosen?.first ?? .random(in: 1_000 ... .max)
    }

    private static let chosen: [UInt64]? = {
        guard let text = ProcessInfo.processInfo.environment["HEADROOM_TEST_SEEDS"] else { return nil }
        let ends = text.split(separator: "-").compactMap { UInt64($0) }
        guard let first = ends.first, let last = ends.last, first <= last else {
            preconditionFailure("HEADROOM_TEST_SEEDS is \(text), and should be like 7 or 100-199")
        }
        return Array(first...last)
    }()

    private var state: UInt64

    public init(seed: UInt64) {
        state = seed
    }

    public mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return mixed ^ (mixed >> 31)
    }

    public mutating func element<Element>(of choices: [Element]) -> Element {
        choices[Int.random(in: choices.indices, using: &self)]
    }

    public mutating func chance(_ percent: Int) -> Bool {
        Int.random(in: 0..<100, using: &self) < percent
    }
}
