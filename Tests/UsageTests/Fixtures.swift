import TestSupport
import Usage

let oneDay: Int64 = 86_400

extension Instant {
    /// The last instant before this one.
    var justBefore: Instant { Instant(microsecondsSince1970: microsecondsSince1970 - 1) }
    var justAfter: Instant { Instant(microsecondsSince1970: microsecondsSince1970 + 1) }
}

extension Standing {
    /// A subscriber on November 10 at noon, whose month is a calendar month.
    static func monthly(
        used: Int,
        limit: Int? = 800,
        plan: Plan = .paid,
        state: SubscriptionState = .active,
        lapse: Refusal? = nil,
        expiresAt: Instant? = nil,
        observedAt: Instant = at("2026-11-10T12:00:00Z")
    ) -> Standing {
        Standing(
            plan: plan,
            state: state,
            period: billingPeriod("2026-11"),
            used: used,
            limit: limit,
            lapse: lapse,
            startedAt: at("2026-11-01"),
            resetsAt: at("2026-12-01"),
            expiresAt: expiresAt,
            observedAt: observedAt
        )
    }

    /// A trial that began on November 10 at 09:30.
    static func trial(
        used: Int,
        lapse: Refusal? = nil,
        state: SubscriptionState = .trial,
        observedAt: Instant = at("2026-11-10T12:00:00Z")
    ) -> Standing {
        Standing(
            plan: .trial,
            state: state,
            period: billingPeriod("trial"),
            used: used,
            limit: 100,
            lapse: lapse,
            startedAt: at("2026-11-10T09:30:00Z"),
            expiresAt: at("2026-11-13T09:30:00Z"),
            observedAt: observedAt
        )
    }

    static func lifetime(used: Int, limit: Int?, lapse: Refusal? = nil) -> Standing {
        let start = at("2026-11-10")
        return Standing(
            plan: Plan(name: "free", label: "Free", cycle: .lifetime, allowance: limit),
            state: .free,
            period: billingPeriod("free"),
            used: used,
            limit: limit,
            lapse: lapse,
            startedAt: start,
            observedAt: start
        )
    }
}

extension ReferenceModel {
    /// A model whose user `ada` holds `plan`.
    static func subscribed(to plan: String, anchorDay: Int? = nil, at now: Instant) throws -> ReferenceModel {
        var model = ReferenceModel()
        _ = try model.setPlan(PlanChange(user: ada, plan: plan, anchorDay: anchorDay), at: now)
        return model
    }
}
