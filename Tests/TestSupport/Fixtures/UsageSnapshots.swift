import Usage

extension UsageSnapshot {
    /// A user of a monthly plan in November, observed on November 10 at noon.
    public static func monthly(
        used: Int,
        limit: Int? = 800,
        plan: Plan = .paid,
        state: SubscriptionState = .active,
        denialReason: DenialReason? = nil,
        expiresAt: Instant? = nil,
        observedAt: Instant = at("2026-11-10T12:00:00Z")
    ) -> UsageSnapshot {
        UsageSnapshot(
            plan: plan,
            state: state,
            period: billingPeriod("2026-11"),
            used: used,
            limit: limit,
            denialReason: denialReason,
            startedAt: at("2026-11-01"),
            resetsAt: at("2026-12-01"),
            expiresAt: expiresAt,
            observedAt: observedAt
        )
    }
}
