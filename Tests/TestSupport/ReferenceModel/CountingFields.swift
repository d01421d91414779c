// MARK: What an answer shows
extension CountingModel.Reply {
    /// The allowance of which most is taken, the first of equals. More than all is all.
    private func fullest(_ allowances: [CountingModel.Allowance]) -> CountingModel.Allowance {
        func parts(_ allowance: CountingModel.Allowance) -> (taken: Int, limit: Int) {
            guard let limit = allowance.limit else { return (-1, 1) }
            return limit == 0 ? (1, 1) : (min(allowance.taken, limit), limit)
        }
        return allowances.dropFirst().reduce(allowances[0]) { fullest, next in
            let (one, other) = (parts(fullest), parts(next))
            return other.taken * one.limit > one.taken * other.limit ? next : fullest
        }
    }

    /// The fields of an answer that are neither names nor sentences, as the line has them.
    var fields: [String: String] {
        let (period, hasAccess) = (allowances[0], access == nil)
        let isOpen = hasAccess && !isPast
        let isLifetime = plan.cycle == "lifetime" && period.limit != nil
        let (isTrial, isKept) = (plan.cycle == "trial", ["active", "free"].contains(state))
        let start = period.opened ?? now
        let days = expires.map { max(1, ($0 - start + .day - 1) / .day) } ?? plan.days
        let today = min(max(0, now - start) / .day + 1, days)
        var fields = [
            "tier": ["silent", "gentle", "prominent", "blocked"][tier],
            "fullest": fullest(allowances).name,
            "display": tier == 3 ? "blocked" : isTrial ? "trial" : tier > 0 || isLifetime ? "compact" : "hidden",
            "fallback": outcome.fallback,
            "reason": outcome.status == "ok" ? refusal : outcome.reason,
            "remaining": hasAccess ? period.limit.map { _ in "\(period.left)" } : "0",
            "resets": isOpen && period.limit != nil ? period.resets.map(String.init) : nil,
            "expires": isTrial || isKept || state == "cancelled" ? accessEnds.map(String.init) : nil,
            "available": isOpen && period.limit != nil && period.resets ?? .max < accessEnds ?? .max
                ? period.resets.map(String.init) : nil,
            "beyond": isOverdrawn ? "unenforced" : nil,
            "grace_until": isOpen && state == "grace_period" ? expires.map(String.init) : nil,
            "day": isTrial ? "\(today) of \(days)" : nil,
            "next_day": isTrial && today < days ? "\(start + today * .day)" : nil,
        ]
        if let window, !isPast {
            fields["window"] = "\(window.used) of \(window.limit!), \(hasAccess ? window.left : 0) left"
            fields["window_resets"] = hasAccess ? window.resets.map(String.init) : nil
        }
        for (kind, name) in parts.named {
            let counts = isPast ? [] : allowances.filter { $0.name == kind }
            let limited = counts.filter { $0.limit != nil }
            guard let shown = limited.isEmpty ? counts.first : fullest(limited) else {
                fields[kind] = name
                continue
            }
            let left = shown.limit.map { " of \($0), \(hasAccess ? shown.left : 0) left" }
            fields[kind] = "\(name): \(shown.used)\(left ?? "")"
            fields["\(kind)_resets"] = hasAccess && left != nil ? shown.resets.map(String.init) : nil
        }
        return fields.compactMapValues { $0 }
    }

    /// All that `USAGE` shows: two equal ones have the same answer.
    var shown: String {
        var usage = self
        (usage.now, usage.outcome) = (0, CountingModel.Outcome())
        return "\(usage) \(isPast) \(fields["day"] ?? "")"
    }
}
