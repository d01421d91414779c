/// Every sentence that a person reads, in one place: warm, in the first person, never a wall.
///
/// The database gets the same sentences from here (`headroom.words`, written by each migration), so that
/// `increment_and_check_usage` and the line protocol cannot drift apart.
public enum Words: String, Sendable, CaseIterable {
    case gentle
    case gentleLifetime = "gentle_lifetime"
    case prominent
    case prominentUndated = "prominent_undated"
    case trial
    case blockedMonthly = "blocked_monthly"
    case blockedMonthlyUndated = "blocked_monthly_undated"
    case blockedTrial = "blocked_trial"
    case blockedTrialEnded = "blocked_trial_ended"
    case blockedNoAccess = "blocked_no_access"
    case blockedNeverSubscribed = "blocked_never_subscribed"
    case cancelled
    case billingIssue = "billing_issue"
    case labelTrial = "label_trial"
    case accessibleMonthly = "accessible_monthly"
    case accessibleMonthlyUnlimited = "accessible_monthly_unlimited"
    case accessibleTrial = "accessible_trial"
    case accessibleLifetime = "accessible_lifetime"
    case accessibleLifetimeUnlimited = "accessible_lifetime_unlimited"
    case accessiblePast = "accessible_past"
    case accessiblePastUnlimited = "accessible_past_unlimited"
    case unreadable

    /// The sentence where `number` is not 1, or is none; what stands in braces is filled in by `filled`.
    public var other: String {
        switch self {
        case .gentle: "You have {remaining} conversations left this month"
        case .gentleLifetime: "You have {remaining} conversations left"
        case .prominent: "Almost there — {remaining} messages left until {date}"
        case .prominentUndated: "Almost there — {remaining} messages left"
        case .trial: "{remaining} of {limit} trial messages remaining"
        case .blockedMonthly:
            "We've had a lot of great conversations this month! Your next session refreshes on {date}."
        case .blockedMonthlyUndated: "We've had a lot of great conversations this month!"
        case .blockedTrial: "You've used your trial sessions — ready to continue?"
        case .blockedTrialEnded: "Your trial has ended — ready to continue?"
        case .blockedNoAccess: "Ready to come back? Your conversations are still here."
        case .blockedNeverSubscribed: "Ready to begin? A subscription opens our conversations."
        case .cancelled: "Your subscription is active until {date}. You can resubscribe anytime."
        case .billingIssue: "There's a hiccup with your payment. Let's get that sorted."
        case .labelTrial: "{label} — Day {day} of {days}"
        case .accessibleMonthly: "{used} of {limit} messages used this month"
        case .accessibleMonthlyUnlimited: "{used} messages used this month"
        case .accessibleTrial: "{used} of {limit} trial messages used"
        case .accessibleLifetime: "{used} of {limit} messages used"
        case .accessibleLifetimeUnlimited: "{used} messages used"
        case .accessiblePast: "{used} of {limit} messages used in {period}"
        case .accessiblePastUnlimited: "{used} messages used in {period}"
        case .unreadable: "I couldn't check your usage right now — don't worry, you can keep chatting."
        }
    }

    /// The sentence where `number` is exactly 1; nil where it is `other` as well.
    public var one: String? {
        switch self {
        case .gentle: "You have {remaining} conversation left this month"
        case .gentleLifetime: "You have {remaining} conversation left"
        case .prominent: "Almost there — {remaining} message left until {date}"
        case .prominentUndated: "Almost there — {remaining} message left"
        case .accessibleMonthlyUnlimited: "{used} message used this month"
        case .accessibleLifetimeUnlimited: "{used} message used"
        case .accessiblePastUnlimited: "{used} message used in {period}"
        default: nil
        }
    }

    /// The number that a sentence is about, which chooses between `one` and `other`.
    private func number(in snapshot: UsageSnapshot) -> Int? {
        switch self {
        case .gentle, .gentleLifetime, .prominent, .prominentUndated, .trial: snapshot.remaining
        case .accessibleMonthly, .accessibleMonthlyUnlimited, .accessibleTrial, .accessibleLifetime,
            .accessibleLifetimeUnlimited, .accessiblePast, .accessiblePastUnlimited:
            snapshot.used
        default: nil
        }
    }

    /// The sentence with its blanks filled in. A blank that the snapshot cannot fill is left out of no sentence: which
    /// sentence stands where is decided by `UsageSnapshot.banner` and its siblings, which know.
    func filled(from snapshot: UsageSnapshot, date: Instant? = nil) -> String {
        guard let forms = Words.forms[self] else { preconditionFailure("forms has all cases") }
        let parts = number(in: snapshot) == 1 ? forms.one : forms.other
        var text = ""
        // Nearly always enough, so that the text is allocated once.
        text.reserveCapacity(96)
        for part in parts {
            switch part {
            case .text(let words): text += words
            case .blank(.remaining): text += snapshot.remaining.map(String.init) ?? "unlimited"
            case .blank(.limit): text += snapshot.limit.map(String.init) ?? "unlimited"
            case .blank(.used): text += String(snapshot.used)
            case .blank(.date): text += date?.date.monthAndDay ?? ""
            case .blank(.label): text += snapshot.plan.label
            case .blank(.day): text += snapshot.trialDay.map { String($0.day) } ?? ""
            case .blank(.days): text += snapshot.trialDay.map { String($0.days) } ?? ""
            case .blank(.period): text += snapshot.period.label
            }
        }
        return text
    }

    private enum Blank: String {
        case remaining, limit, used, date, label, day, days, period
    }

    private enum Part {
        case text(String)
        case blank(Blank)
    }

    /// Taken apart once, because looking for braces costs more than all the rest of a sentence.
    private static let forms = Dictionary(
        uniqueKeysWithValues: allCases.map { words in
            (words, (one: parts(of: words.one ?? words.other), other: parts(of: words.other)))
        }
    )

    private static func parts(of template: String) -> [Part] {
        var parts: [Part] = []
        var rest = template[...]
        while let open = rest.firstIndex(of: "{"), let close = rest[open...].firstIndex(of: "}") {
            guard let blank = Blank(rawValue: String(rest[rest.index(after: open)..<close])) else {
                preconditionFailure("a template names a blank that nothing fills")
            }
            if open > rest.startIndex { parts.append(.text(String(rest[..<open]))) }
            parts.append(.blank(blank))
            rest = rest[rest.index(after: close)...]
        }
        return rest.isEmpty ? parts : parts + [.text(String(rest))]
    }
}

extension UsageSnapshot {
    /// What to tell the user about what is left, or nil when there is nothing to say.
    public var banner: String? {
        if isPast { return nil }
        return switch tier {
        case .blocked: blockedBanner
        case _ where plan.isTrial: Words.trial.filled(from: self)
        case .silent: nil
        // An allowance that never comes back is not this month's.
        case .gentle: (plan.cycle == .monthly ? Words.gentle : .gentleLifetime).filled(from: self)
        case .prominent:
            comesBackAt.map { Words.prominent.filled(from: self, date: $0) }
                ?? Words.prominentUndated.filled(from: self)
        }
    }

    private var blockedBanner: String {
        if plan.isTrial && (denialReason == nil || denialReason == .trialEnded) {
            let hasMessagesLeft = limit.map { used + held < $0 } ?? true
            return (hasMessagesLeft ? Words.blockedTrialEnded : .blockedTrial).filled(from: self)
        }
        if denialReason == nil, plan.cycle == .monthly {
            return comesBackAt.map { Words.blockedMonthly.filled(from: self, date: $0) }
                ?? Words.blockedMonthlyUndated.filled(from: self)
        }
        let hasNeverSubscribed = state == .free && previousPlan == nil
        return (hasNeverSubscribed ? Words.blockedNeverSubscribed : .blockedNoAccess).filled(from: self)
    }

    /// What to tell the user about the subscription, or nil.
    public var notice: String? {
        if isPast { return nil }
        return switch state {
        // A store can tell of the cancellation before it tells the date; without one the sentence has a hole.
        case .cancelled: expiresAt.map { Words.cancelled.filled(from: self, date: $0) }
        case .gracePeriod, .billingRetry: Words.billingIssue.filled(from: self)
        case .trial, .active, .expired, .revoked, .free: nil
        }
    }

    /// The plan as a person reads it: "Premium", or "Trial — Day 2 of 3".
    public var label: String {
        plan.isTrial ? Words.labelTrial.filled(from: self) : plan.label
    }

    /// The usage as a sentence, for a screen reader.
    public var accessible: String {
        let words: Words =
            switch plan.cycle {
            case .monthly where isPast: limit == nil ? .accessiblePastUnlimited : .accessiblePast
            case .monthly: limit == nil ? .accessibleMonthlyUnlimited : .accessibleMonthly
            case .trial: .accessibleTrial
            case .lifetime: limit == nil ? .accessibleLifetimeUnlimited : .accessibleLifetime
            }
        return words.filled(from: self)
    }
}
