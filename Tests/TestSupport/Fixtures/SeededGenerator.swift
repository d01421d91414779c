import Foundation

/// Whether `script/test --long` asked for the tests that every run leaves out.
public let isLongRun = ProcessInfo.processInfo.environment["HEADROOM_TEST_LONG"] != nil

/// SplitMix64 (Steele, Lea and Flood): the same numbers for the same seed, so that a test can be repeated.
public struct SeededGenerator: RandomNumberGenerator, Sendable {
    public static let seeds = seeds(always: [1, 2, 3])

    /// Fixed seeds, as arguments of a test: a failure prints its seed. A long run has a random one, too; any other run
    /// gives the same result for the same code.
    ///
    /// The environment variable `HEADROOM_TEST_SEEDS` replaces all of them: `7`, or `100-199`.
    public static func seeds(always: [UInt64]) -> [UInt64] { chosen ?? always + (isLongRun ? [randomSeed] : []) }

    /// The seed of a test that uses one seed and prints it.
    public static func newSeed() -> UInt64 { chosen?.first ?? (isLongRun ? randomSeed : 1) }

    private static var randomSeed: UInt64 { .random(in: 1_000 ... .max) }

    private static let chosen: [UInt64]? = {
        guard let text = ProcessInfo.processInfo.environment["HEADROOM_TEST_SEEDS"] else { return nil }
        let ends = text.split(separator: "-").compactMap { UInt64($0) }
        guard let first = ends.first, let last = ends.last, first <= last else {
            preconditionFailure("HEADROOM_TEST_SEEDS is \(text); give one seed or a range, such as 7 or 100-199")
        }
        return Array(first...last)
    }()

    private var state: UInt64

    public init(seed: UInt64) { state = seed }

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

    public mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &self) < percent }
}
