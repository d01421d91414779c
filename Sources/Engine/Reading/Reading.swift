import Usage

/// What a dashboard asks about all users of a billing period, or of every period that is open (`BillingPeriod.open`).
public enum Reading: Hashable, Sendable {
    /// Users, messages and tiers.
    case report(BillingPeriod)
    /// The users with the most messages, so many of them.
    case top(BillingPeriod, count: Int)
    /// The report of every period, in one walk over the table.
    case allPeriods
}

/// A reading, where its outcome goes, and until when somebody waits for it.
public struct ReadingRequest: Sendable, Equatable {
    public var reading: Reading
    public var returnAddress: ReturnAddress
    public var deadline: ContinuousClock.Instant

    public init(reading: Reading, returnAddress: ReturnAddress, deadline: ContinuousClock.Instant) {
        self.reading = reading
        self.returnAddress = returnAddress
        self.deadline = deadline
    }
}

extension EngineError {
    package static let readingTookTooLong = EngineError(
        .unavailable,
        "the reading was not complete in time; try again, or raise report-timeout-ms"
    )
    static let readerIsAway = EngineError(.unavailable, "the database cannot be reached; try again")
    static let tooManyReadings = EngineError(.overloaded, "too many readings are waiting; try again")
    static let readingWasCutShort = EngineError(
        .unavailable,
        "this instance is shutting down before the reading is complete; ask another one"
    )
}
