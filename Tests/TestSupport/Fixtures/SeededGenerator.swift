/// SplitMix64 (Steele, Lea and Flood): the same numbers for the same seed, so that a test that prints its seed can be run
/// again.
public struct SeededGenerator: RandomNumberGenerator, Sendable {
    /// Fixed seeds, and one that is new in each run; a test takes them as its argument, so a failure prints its own.
    public static let seeds: [UInt64] = [1, 2, 3, UInt64.random(in: 4...UInt64.max)]

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
