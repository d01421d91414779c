extension UsageSnapshot {
    /// Whether `USAGE` says the same of both: all but the instant at which they were observed.
    public func readsLike(_ other: UsageSnapshot) -> Bool {
        used == other.used && held == other.held && denialReason == other.denialReason
            && entitlement == other.entitlement
            && trialDay?.day == other.trialDay?.day && isPast == other.isPast && renewsAt == other.renewsAt
            && nextPlan == other.nextPlan
    }

    /// When the next day of a trial begins, which its label counts; nil on the last one, and without a trial.
    public var nextTrialDayAt: Instant? {
        guard let (day, days) = trialDay, day < days else { return nil }
        return startedAt.advanced(bySeconds: Int64(day) * 86_400)
    }
}
