extension UsageSnapshot {
    /// Whether `USAGE` has the same answer for both, which differ at most in the time of observation.
    public func hasSameUsage(as other: UsageSnapshot) -> Bool {
        used == other.used && held == other.held && denialReason == other.denialReason
            && entitlement == other.entitlement
            && trialDay?.day == other.trialDay?.day && isPast == other.isPast && renewsAt == other.renewsAt
            && nextPlan == other.nextPlan
    }

    /// When the next day of a trial begins, which changes its label. Nil on the last day, and without a trial.
    public var nextTrialDayAt: Instant? {
        guard let (day, days) = trialDay, day < days else { return nil }
        return startedAt.advanced(bySeconds: Int64(day) * 86_400)
    }
}
