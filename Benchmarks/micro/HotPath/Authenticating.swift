extension Body {
    /// Among 100 live tokens; `script/microbench` requires the same number of instructions for each wrong one.
    static let authenticating = [
        authenticate("authenticate, first byte of 100 wrong", wrongByte: 0),
        authenticate("authenticate, last byte of 100 wrong", wrongByte: 31),
        authenticate("authenticate, one of 100", wrongByte: nil),
    ]

    private static func authenticate(_ name: String, wrongByte: Int?) -> Body {
        Body(name) {
            let tokens = TokensUnderTest(tokens: 100, wrongByte: wrongByte)
            let now = ContinuousClock.now
            return { tokens.authenticate(at: now) }
        }
    }
}
