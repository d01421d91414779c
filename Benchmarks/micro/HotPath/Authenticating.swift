extension BenchmarkCase {
    /// Compares a presented token with 100 live ones. In the first two, the digest that should match differs in one
    /// byte. `script/microbench` requires the same number of instructions for both, so that the time does not reveal
    /// how much of a token is right.
    static let authenticating = [
        authenticate("authenticate, first byte of 100 wrong", wrongByte: 0),
        authenticate("authenticate, last byte of 100 wrong", wrongByte: 31),
        authenticate("authenticate, one of 100", wrongByte: nil),
    ]

    private static func authenticate(_ name: String, wrongByte: Int?) -> BenchmarkCase {
        BenchmarkCase(name) {
            let tokens = TokensUnderTest(tokens: 100, wrongByte: wrongByte)
            let now = ContinuousClock.now
            return { tokens.authenticate(at: now) }
        }
    }
}
