/// SplitMix64. The same seed repeats the same load, which the system's generator cannot do.
public struct SeededRandom: RandomNumberGenerator, Sendable {
    private var state: UInt64

    public init(seed: UInt64) {
        state = seed
    }

    @inline(__always)
    public mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// A number between 0 and 1, both excluded, so that its logarithm exists and is not 0.
    @inline(__always)
    mutating func unit() -> Double {
        (Double(next() >> 11) + 0.5) * 0x1p-53
    }

    /// An independent generator for another thread or purpose.
    mutating func split() -> SeededRandom {
        SeededRandom(seed: next())
    }
}
