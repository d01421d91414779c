/// A place in a template where a value is filled in: `{remaining}`.
public enum Blank: String, Sendable, CaseIterable {
    case remaining, limit, used, requested, date, wait, label, banner, fallback, day, days, period, month, year, n
    case larger, smaller
}

extension Sentence {
    /// The blanks that the sentence's templates may have. A template with another one is refused when it is written.
    public var blanks: [Blank] {
        switch self {
        case .gentle, .gentleLifetime, .prominentUndated, .lifetime, .trial, .blockedMonthlyUndated, .blockedUndated,
            .blockedLifetime, .blockedTrial, .accessibleMonthly, .accessibleMonthlyUnlimited, .accessibleTrial,
            .accessibleLifetime, .accessibleLifetimeUnlimited:
            [.remaining, .limit, .used]
        case .gentleUntil, .prominent, .trialLastDay, .blockedMonthly, .blockedUntil, .accessibleUntil,
            .accessibleUntilUnlimited:
            [.remaining, .limit, .used, .date]
        case .gentleWait, .prominentWait, .blockedWait, .accessibleWait, .accessibleWaitUnlimited, .window,
            .blockedWindow:
            [.remaining, .limit, .used, .wait]
        case .modelUntil, .blockedModelUntil: [.remaining, .limit, .used, .label, .date]
        case .modelWait, .blockedModelWait: [.remaining, .limit, .used, .label, .wait]
        case .modelUndated, .blockedModelUndated: [.remaining, .limit, .used, .label]
        case .blockedModelNoMessages: [.label]
        case .fallback: [.banner, .fallback]
        case .blockedMemberUntil: [.remaining, .limit, .used, .date]
        case .blockedMemberWait: [.remaining, .limit, .used, .wait]
        case .blockedMemberUndated: [.remaining, .limit, .used]
        case .exceedsUndated: [.requested, .remaining, .limit, .used]
        case .exceedsUntil: [.requested, .remaining, .limit, .used, .date]
        case .exceedsWait: [.requested, .remaining, .limit, .used, .wait]
        case .accessiblePast, .accessiblePastUnlimited: [.limit, .used, .period]
        case .blockedEnded: [.label, .date]
        case .cancelled, .cancelledTrial, .billingIssue: [.date]
        case .labelTrial: [.label, .day, .days]
        case .date: [.month, .day]
        case .dateWithYear: [.date, .year]
        case .days, .hours, .minutes: [.n]
        case .waitJoined: [.larger, .smaller]
        case .blockedNoMessages, .blockedTrialEnded, .blockedNoAccess, .blockedNeverSubscribed, .blockedRefunded,
            .blockedBillingRetry, .billingIssueUndated, .billingRetry, .billingIssueSteps, .stateActive, .stateTrial,
            .stateCancelled, .stateBillingIssue, .stateExpired, .stateRefunded, .stateFree, .unreadable, .uncounted,
            .unlimited, .month1, .month2, .month3, .month4, .month5, .month6, .month7, .month8, .month9, .month10,
            .month11, .month12:
            []
        }
    }

    /// The blank whose number chooses among the plural forms; nil for a sentence that has one form.
    public var numberBlank: Blank? {
        switch self {
        // More messages are requested than remain, so that their number is never 1.
        case .gentle, .gentleUntil, .gentleWait, .gentleLifetime, .prominent, .prominentWait, .prominentUndated, .trial,
            .trialLastDay, .exceedsUntil, .exceedsWait, .exceedsUndated, .window, .modelUntil,
            .modelWait, .modelUndated:
            .remaining
        case .blockedLifetime: .limit
        case .lifetime, .accessibleMonthly, .accessibleMonthlyUnlimited, .accessibleUntil, .accessibleUntilUnlimited,
            .accessibleWait, .accessibleWaitUnlimited, .accessibleTrial, .accessibleLifetime,
            .accessibleLifetimeUnlimited, .accessiblePast, .accessiblePastUnlimited:
            .used
        case .date: .day
        case .days, .hours, .minutes: .n
        default: nil
        }
    }
}
