import Foundation

/// A plan. Its cycle is `monthly`, `weekly`, `daily`, `trial` or `lifetime`.
struct PlanRules {
    var name: String
    var cycle: String
    var days = 0
    var zone: String?
    var allowance: Int?
    var window: (messages: Int, seconds: Int)?
    var isEnforced = true
    /// From which the tiers gentle and prominent begin.
    var percents = [80, 95]
    var limits: [PartLimit] = []

    var isPeriodic: Bool { ["monthly", "weekly", "daily"].contains(cycle) }
    var initialState: String { ["trial": "trial", "lifetime": "free"][cycle] ?? "active" }
}

/// A subscription as an operator sets it; its state follows from it and the clock.
struct Subscription {
    var plan: String
    var started: Int?
    var paidUntil: Int?
    /// Of a grace period or a billing retry only.
    var graceUntil: Int?
    var anchorDay: Int?
    var isCancelled = false
    /// Whether a store renews it; nil if no store has sold it.
    var renews: Bool?
    var revoked: Int?
    var previousPlan: String?

    /// Nil is never.
    func accessEnd(under plan: PlanRules) -> Int? {
        if plan.cycle == "trial" { return paidUntil ?? started.map { $0 + plan.days * .day } }
        return graceUntil.map { max($0, paidUntil ?? $0) } ?? paidUntil
    }

    /// The state, and why there is no access.
    func state(under plan: PlanRules, at now: Int) -> (String, String?) {
        let isOver = accessEnd(under: plan) ?? .max <= now
        if revoked != nil { return ("revoked", "revoked") }
        if plan.cycle == "trial", !(isOver && isCancelled) { return ("trial", isOver ? "trial_ended" : nil) }
        if graceUntil != nil { return isOver ? ("billing_retry", "billing_retry") : ("grace_period", nil) }
        if isOver { return ("expired", "expired") }
        return (isCancelled && plan.isPeriodic ? "cancelled" : plan.initialState, nil)
    }
}

// MARK: Operators
extension CountingModel {
    /// SETPLAN. The dates of the change are those of an operator, who may leave them out.
    mutating func setPlan(_ change: Subscription, state: String?) throws(Failure) -> Reply {
        guard let plan = plans[change.plan] else { throw .unknownPlan }
        let state = state ?? plan.initialState
        let periodic = plan.isPeriodic ? ["cancelled", "grace_period", "billing_retry"] : []
        guard ([plan.initialState, "expired", "revoked"] + periodic).contains(state) else { throw .stateDoesNotFit }
        restoreSpent()
        var new = change
        new.anchorDay = change.anchorDay ?? subscription?.anchorDay
        if plan.cycle == "trial" { (trialStart, trialEnd) = (change.started ?? trialStart ?? now, nil) }
        new.started = change.started ?? (plan.cycle == "trial" ? trialStart : now)
        new.graceUntil = nil
        switch state {
        case "cancelled":
            new.isCancelled = true
            new.paidUntil = change.paidUntil ?? plan.cycle(at: now, new.anchorDay ?? 1)?.end
        case "grace_period": new.graceUntil = change.graceUntil ?? (change.paidUntil ?? now) + 16 * .day
        case "billing_retry":
            new.graceUntil = min(change.graceUntil ?? now, now)
            new.paidUntil = change.paidUntil.map { min($0, now) }
        case "expired":
            new.paidUntil = min(change.paidUntil ?? now, now)
            new.isCancelled = true
        case "revoked": new.revoked = now
        default: break
        }
        if let old = subscription {
            new.previousPlan = plans[old.plan]!.isPeriodic && old.plan != plan.name ? old.plan : old.previousPlan
        }
        subscription = new
        updateRows(plan)
        return usage()
    }

    /// Unused rows follow from the subscription: one for the open period, if the user has access to messages in it.
    private mutating func updateRows(_ plan: PlanRules) {
        window = window?.shortened(to: plan.window?.seconds)
        var open = usage()
        let isOpen = open.access == nil && plan.allowance != 0
        for period in rows.keys where !(isOpen && period == open.period) && isUnused(period) { dropRow(period) }
        if isOpen, plan.isPeriodic { endRows(of: plan.cycle, before: open.allowances[0].opened!) }
        guard isOpen, isUnused(open.period) else {
            let isDated = rows[open.period]?.usage.allowances[0].resets != nil && open.allowances[0].resets != nil
            if isDated { rows[open.period]?.usage.allowances[0].resets = open.allowances[0].resets }
            return
        }
        open.allowances[0].plain = plan.allowance.map { $0 + heldOfBalances(in: open.period) }
        write(open)
    }

    /// A period of the plan's cycle ends no later than a later one begins, whatever the anchor day was.
    private mutating func endRows(of cycle: String, before start: Int) {
        for (period, row) in rows where row.usage.plan.cycle == cycle && row.usage.allowances[0].opened! < start {
            rows[period]?.usage.allowances[0].resets = row.usage.allowances[0].resets.map { min($0, start) }
        }
    }

    /// FORGET keeps how much of trials and of other plans that never reset was used.
    mutating func forget() {
        for plan in plans.values {
            let (used, isPresent) = (rows[plan.name]?.used, subscription?.plan == plan.name)
            let isTrial = plan.cycle == "trial"
            if isTrial, isPresent, let subscription {
                trialEnd = [subscription.revoked, subscription.paidUntil].compactMap { $0 }.min() ?? trialEnd
            }
            guard used != nil || isPresent || plan.name == "trial" else { continue }
            if isTrial && trialStart != nil || used ?? 0 > 0 { spent[plan.name] = used ?? spent[plan.name] ?? 0 }
        }
        (subscription, rows, keys, window, windows) = (nil, [:], [:], nil, [:])
        (grants, balances) = ([:], [])
    }

    /// A forgotten user has returned.
    mutating func restoreSpent() {
        for (name, used) in spent {
            let plan = plans[name]!
            let trial = Subscription(plan: name, started: trialStart, paidUntil: trialEnd)
            let isTrial = plan.cycle == "trial"
            var usage = Reply(plan: plan, state: isTrial ? "trial" : "free", period: name, now: now)
            usage.expires = isTrial ? trial.accessEnd(under: plan) : nil
            let opened = isTrial ? trialStart ?? now : now
            usage.allowances = [Allowance(name: "period", used: used, limit: plan.allowance, opened: opened)]
            rows[name] = Row(usage: usage, planLimit: plan.allowance, usedAt: now)
        }
        spent = [:]
    }
}

extension CountingModel.Window {
    /// A plan with shorter windows ends an open one earlier.
    func shortened(to seconds: Int?) -> CountingModel.Window {
        var window = self
        window.ends = seconds.map { min(ends, opened + $0 * .second) } ?? ends
        return window
    }
}

// MARK: Calendar
struct Cycle: Equatable { var label: String, start: Int, end: Int }

extension PlanRules {
    /// The month, week or day of an instant; nil for a plan that never resets.
    func cycle(at instant: Int, _ anchorDay: Int) -> Cycle? {
        guard isPeriodic else { return nil }
        var calendar = Calendar(identifier: .iso8601)
        calendar.timeZone = TimeZone(identifier: cycle == "monthly" ? "UTC" : zone ?? "UTC")!
        let date = Date(timeIntervalSince1970: Double(instant / .second))
        let unit: Calendar.Component = cycle == "monthly" ? .month : cycle == "weekly" ? .weekOfYear : .day
        var span = calendar.dateInterval(of: unit, for: date)!
        if cycle == "monthly" {
            // In a shorter month on its last day.
            func start(_ offset: Int) -> Date {
                let first = calendar.date(byAdding: .month, value: offset, to: span.start)!
                let next = calendar.date(byAdding: .month, value: 1, to: first)!
                return min(first + Double(anchorDay - 1) * 86_400, next - 86_400)
            }
            let offset = date < start(0) ? -1 : 0
            span = DateInterval(start: start(offset), end: start(offset + 1))
        }
        let parts = calendar.dateComponents([.year, .month, .day, .yearForWeekOfYear, .weekOfYear], from: span.start)
        let (year, month, week) = (parts.year!, parts.month!, parts.weekOfYear!)
        let label =
            switch cycle {
            case "monthly": String(format: "%04d-%02d", year, month)
            case "weekly": String(format: "%04d-W%02d", parts.yearForWeekOfYear!, week)
            default: String(format: "%04d-%02d-%02d", year, month, parts.day!)
            }
        let ends = [span.start, span.end].map { Int($0.timeIntervalSince1970) * .second }
        return Cycle(label: label, start: ends[0], end: ends[1])
    }
}
