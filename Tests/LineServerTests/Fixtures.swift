import Usage

extension UsageSnapshot {
    /// A subscriber, at an instant that no test looks at.
    static func paid(used: Int) -> UsageSnapshot {
        let instant = Instant(secondsSince1970: 0)
        return UsageSnapshot(
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
