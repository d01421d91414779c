import Usage

extension Standing {
    /// A subscriber, at an instant that no test looks at.
    static func paid(used: Int) -> Standing {
        let instant = Instant(secondsSince1970: 0)
        return Standing(
            plan: .paid,
            state: .active,
            period: BillingPeriod(year: 2026, month: 11),
            used: used,
            limit: 800,
            startedAt: instant,
            observedAt: instant
        )
    }
}
