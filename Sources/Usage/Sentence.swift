/// The sentences for users, in a warm first person.
///
/// `headroom migrate` writes them to the table `headroom.words`, so that SQL functions and the line protocol use the
/// same ones.
public enum Sentence: String, Sendable, CaseIterable {
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
    case uncounted

    /// The template for numbers other than 1, with placeholders in braces.
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
        case .unreadable: "I couldn't check your usage right now. Let's try again in a moment."
        case .uncounted: "I couldn't check your usage right now — don't worry, you can keep chatting."
        }
    }

    /// The template for the number 1; nil if it is `other`.
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

    /// The number that chooses between `one` and `other`.
    private func number(in snapshot: UsageSnapshot) -> Int? {
        switch self {
        case .gentle, .gentleLifetime, .prominent, .prominentUndated, .trial: snapshot.remaining
        case .accessibleMonthly, .accessibleMonthlyUnlimited, .accessibleTrial, .accessibleLifetime,
            .accessibleLifetimeUnlimited, .accessiblePast, .accessiblePastUnlimited:
            snapshot.used
        default: nil
        }
    }

    /// The sentence with its placeholders filled in. `UsageSnapshot.banner` and the properties below it only choose a
    /// sentence for whose placeholders the snapshot has values.
    func filled(from snapshot: UsageSnapshot, date: Instant? = nil) -> String {
        guard let template = Sentence.templates[self] else { preconditionFailure("templates has all cases") }
        let parts = number(in: snapshot) == 1 ? template.one : template.other
        var text = ""
        // Nearly always long enough, so that the text is allocated once.
        text.reserveCapacity(96)
        for part in parts {
            switch part {
            case .text(let literal): text += literal
            case .placeholder(.remaining): text += snapshot.remaining.map(String.init) ?? "unlimited"
            case .placeholder(.limit): text += snapshot.limit.map(String.init) ?? "unlimited"
            case .placeholder(.used): text += String(snapshot.used)
            case .placeholder(.date): text += date?.date.monthAndDay ?? ""
            case .placeholder(.label): text += snapshot.plan.label
            case .placeholder(.day): text += snapshot.trialDay.map { String($0.day) } ?? ""
            case .placeholder(.days): text += snapshot.trialDay.map { String($0.days) } ?? ""
            case .placeholder(.period): text += snapshot.period.label
            }
        }
        return text
    }

    private enum Placeholder: String {
        case remaining, limit, used, date, label, day, days, period
    }

    private enum Part {
        case text(String)
        case placeholder(Placeholder)
    }

    /// Parsed once, because parsing costs more than filling in.
    private static let templates = Dictionary(
        uniqueKeysWithValues: allCases.map { sentence in
            (sentence, (one: parts(of: sentence.one ?? sentence.other), other: parts(of: sentence.other)))
        }
    )

    private static func parts(of template: String) -> [Part] {
        var parts: [Part] = []
        var rest = template[...]
        while let open = rest.firstIndex(of: "{"), let close = rest[open...].firstIndex(of: "}") {
            guard let placeholder = Placeholder(rawValue: String(rest[rest.index(after: open)..<close])) else {
                preconditionFailure("a template has an unknown placeholder")
            }
            if open > rest.startIndex { parts.append(.text(String(rest[..<open]))) }
            parts.append(.placeholder(placeholder))
            rest = rest[rest.index(after: close)...]
        }
        return rest.isEmpty ? parts : parts + [.text(String(rest))]
    }
}

extension UsageSnapshot {
    /// The sentence about the messages that are left, or nil.
    public var banner: String? {
        if isPast { return nil }
        return switch tier {
        case .blocked: blockedBanner
        case _ where plan.isTrial: Sentence.trial.filled(from: self)
        case .silent: nil
        // A lifetime allowance does not belong to a month.
        case .gentle: (plan.cycle == .monthly ? Sentence.gentle : .gentleLifetime).filled(from: self)
        case .prominent:
            availableAgainAt.map { Sentence.prominent.filled(from: self, date: $0) }
                ?? Sentence.prominentUndated.filled(from: self)
        }
    }

    private var blockedBanner: String {
        if plan.isTrial && (denialReason == nil || denialReason == .trialEnded) {
            let hasMessagesLeft = limit.map { used + held < $0 } ?? true
            return (hasMessagesLeft ? Sentence.blockedTrialEnded : .blockedTrial).filled(from: self)
        }
        if denialReason == nil, plan.cycle == .monthly {
            return availableAgainAt.map { Sentence.blockedMonthly.filled(from: self, date: $0) }
                ?? Sentence.blockedMonthlyUndated.filled(from: self)
        }
        let hasNeverSubscribed = state == .free && previousPlan == nil
        return (hasNeverSubscribed ? Sentence.blockedNeverSubscribed : .blockedNoAccess).filled(from: self)
    }

    /// The sentence about the subscription, or nil.
    public var notice: String? {
        if isPast { return nil }
        return switch state {
        // A store may report the cancellation before its date. The sentence needs the date.
        case .cancelled: expiresAt.map { Sentence.cancelled.filled(from: self, date: $0) }
        case .gracePeriod, .billingRetry: Sentence.billingIssue.filled(from: self)
        case .trial, .active, .expired, .revoked, .free: nil
        }
    }

    /// The plan's label for users: "Premium", or "Trial — Day 2 of 3".
    public var label: String {
        plan.isTrial ? Sentence.labelTrial.filled(from: self) : plan.label
    }

    /// The usage as a sentence, for a screen reader.
    public var accessible: String {
        let sentence: Sentence =
            switch plan.cycle {
            case .monthly where isPast: limit == nil ? .accessiblePastUnlimited : .accessiblePast
            case .monthly: limit == nil ? .accessibleMonthlyUnlimited : .accessibleMonthly
            case .trial: .accessibleTrial
            case .lifetime: limit == nil ? .accessibleLifetimeUnlimited : .accessibleLifetime
            }
        return sentence.filled(from: self)
    }
}
