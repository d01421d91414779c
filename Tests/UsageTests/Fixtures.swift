import TestSupport
import Usage

extension Instant {
    /// The last instant before this one.
    var justBefore: Instant { Instant(microsecondsSince1970: microsecondsSince1970 - 1) }
}

extension UsageSnapshot {
    /// A trial from November 10 at 09:30.
    static func trial(
        used: Int,
        denialReason: DenialReason? = nil,
        state: SubscriptionState = .trial,
        observedAt: Instant = at("2026-11-10T12:00:00Z")
    ) -> UsageSnapshot {
        UsageSnapshot(
            plan: .trial,
            state: state,
            period: billingPeriod("trial"),
            used: used,
            limit: 100,
            denialReason: denialReason,
            startedAt: at("2026-11-10T09:30:00Z"),
            expiresAt: at("2026-11-13T09:30:00Z"),
            observedAt: observedAt
        )
    }

    static func lifetime(used: Int, limit: Int?, denialReason: DenialReason? = nil) -> UsageSnapshot {
        let start = at("2026-11-10")
        return UsageSnapshot(
            plan: Plan(name: "free", label: "Free", cycle: .lifetime, allowance: limit),
            state: .free,
            period: billingPeriod("free"),
            used: used,
            limit: limit,
            denialReason: denialReason,
            startedAt: start,
            observedAt: start
        )
    }
}

extension ReferenceModel {
    /// A model in which `ada` is subscribed to `plan`.
    static func subscribed(to plan: String, anchorDay: Int? = nil, at now: Instant) throws -> ReferenceModel {
        var model = ReferenceModel()
        _ = try model.setPlan(PlanChange(user: ada, plan: plan, anchorDay: anchorDay), at: now)
        return model
    }
}
