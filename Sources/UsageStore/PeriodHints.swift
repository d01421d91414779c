import Usage

/// Where a lane expects each user's usage row. Only hints: a statement that finds no usable row there sends the user
/// the careful way, so a wrong or forgotten hint costs a round trip and never an answer.
///
/// Most users of a monthly plan count in the calendar month, so only exceptions are kept.
struct PeriodHints {
    private struct Hint {
        /// Position in `labels`.
        var label: UInt16
        /// The user could send nothing more when last seen; reading before counting saves a write that would fail.
        var isExhausted: Bool
    }

    /// The calendar month by the database's clock, when last heard.
    private(set) var calendarMonth: BillingPeriod {
        didSet { calendarMonthNumber = calendarMonth.month?.month ?? 0 }
    }
    /// 1 to 12; spares the comparison of labels for every answer.
    private var calendarMonthNumber: Int
    private var hints: [UserID: Hint] = [:]
    private var labels: [BillingPeriod] = []
    private var positions: [BillingPeriod: UInt16] = [:]
    private let capacity: Int

    /// - Parameter capacity: users remembered, about 40 bytes each; when more come, all are forgotten and learned anew.
    init(calendarMonth: BillingPeriod, capacity: Int = 262_144) {
        self.calendarMonth = calendarMonth
        calendarMonthNumber = calendarMonth.month?.month ?? 0
        self.capacity = capacity
    }

    func period(of user: UserID) -> BillingPeriod {
        hints[user].map { labels[Int($0.label)] } ?? calendarMonth
    }

    func isExhausted(_ user: UserID) -> Bool {
        hints[user]?.isExhausted ?? false
    }

    /// A new month by the database's clock: what was an exception may be one no more.
    mutating func observe(_ month: BillingPeriod) {
        guard month != calendarMonth else { return }
        calendarMonth = month
        hints.removeAll(keepingCapacity: true)
    }

    /// Remembers what was seen of a user.
    mutating func learn(_ user: UserID, _ standing: Standing) {
        let date = standing.observedAt.date
        if date.month != calendarMonthNumber {
            observe(BillingPeriod(year: date.year, month: date.month))
        }
        let isExhausted = standing.refusal(of: 1) != nil
        guard isExhausted || standing.period != calendarMonth else {
            if !hints.isEmpty { hints[user] = nil }
            return
        }
        if hints.count >= capacity { hints.removeAll(keepingCapacity: true) }
        guard let label = position(of: standing.period) else { return }
        hints[user] = Hint(label: label, isExhausted: isExhausted)
    }

    /// Labels are few: months around now, and the plans that never reset. Nil when there are too many to number.
    private mutating func position(of period: BillingPeriod) -> UInt16? {
        if let known = positions[period] { return known }
        guard let next = UInt16(exactly: labels.count) else { return nil }
        labels.append(period)
        positions[period] = next
        return next
    }
}
