/// The sentences for users, in a warm first person.
///
/// `headroom migrate` writes them to the table `headroom.words`, so that SQL functions and the line protocol use the
/// same ones.
public enum Sentence: String, Sendable, CaseIterable {
    case gentle
    case gentleUntil = "gentle_until"
    case gentleLifetime = "gentle_lifetime"
    case prominent
    case prominentUndated = "prominent_undated"
    case lifetime
    case trial
    case window
    case blockedWindow = "blocked_window"
    case blockedMonthly = "blocked_monthly"
    case blockedMonthlyUndated = "blocked_monthly_undated"
    case blockedUntil = "blocked_until"
    case blockedUndated = "blocked_undated"
    case blockedTrial = "blocked_trial"
    case blockedTrialEnded = "blocked_trial_ended"
    case blockedNoAccess = "blocked_no_access"
    case blockedNeverSubscribed = "blocked_never_subscribed"
    case cancelled
    case cancelledTrial = "cancelled_trial"
    case billingIssue = "billing_issue"
    case billingIssueUndated = "billing_issue_undated"
    case billingRetry = "billing_retry"
    case billingIssueSteps = "steps_billing_issue"
    case stateActive = "state_active"
    case stateTrial = "state_trial"
    case stateCancelled = "state_cancelled"
    case stateBillingIssue = "state_billing_issue"
    case stateExpired = "state_expired"
    case stateRefunded = "state_refunded"
    case stateFree = "state_free"
    case labelTrial = "label_trial"
    case accessibleMonthly = "accessible_monthly"
    case accessibleMonthlyUnlimited = "accessible_monthly_unlimited"
    case accessibleUntil = "accessible_until"
    case accessibleUntilUnlimited = "accessible_until_unlimited"
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
        case .gentleUntil: "You have {remaining} conversations left until {date}"
        case .gentleLifetime: "You have {remaining} conversations left"
        case .prominent: "Almost there — {remaining} messages left until {date}"
        case .prominentUndated: "Almost there — {remaining} messages left"
        case .lifetime: "{used} of {limit} messages used"
        case .trial: "{remaining} of {limit} trial messages remaining"
        case .window: "{remaining} messages left for the next {wait}"
        case .blockedWindow: "Let's take a short break. I'm here for you again in {wait}."
        case .blockedMonthly:
            "We've had a lot of great conversations this month! Your next session refreshes on {date}."
        case .blockedMonthlyUndated: "We've had a lot of great conversations this month!"
        case .blockedUntil: "We've had a lot of great conversations! Your next session refreshes on {date}."
        case .blockedUndated: "We've had a lot of great conversations!"
        case .blockedTrial: "You've used your trial sessions — ready to continue?"
        case .blockedTrialEnded: "Your trial has ended — ready to continue?"
        case .blockedNoAccess: "Ready to come back? Your conversations are still here."
        case .blockedNeverSubscribed: "Ready to begin? A subscription opens our conversations."
        case .cancelled: "Your subscription is active until {date}. You can resubscribe anytime."
        case .cancelledTrial: "Your trial is active until {date}. You can subscribe anytime."
        case .billingIssue:
            "There's a hiccup with your payment. Let's get that sorted. Your access stays until {date}."
        case .billingIssueUndated: "There's a hiccup with your payment. Let's get that sorted."
        case .billingRetry:
            "I couldn't renew your subscription. Update your payment method and we can go on right away."
        case .billingIssueSteps:
            "Open your subscription settings, check the payment method, then come back — I'll be right here."
        case .stateActive: "Active"
        case .stateTrial: "Trial"
        case .stateCancelled: "Cancelled"
        case .stateBillingIssue: "Billing issue"
        case .stateExpired: "Expired"
        case .stateRefunded: "Refunded"
        case .stateFree: "Free"
        case .labelTrial: "{label} — Day {day} of {days}"
        case .accessibleMonthly: "{used} of {limit} messages used this month"
        case .accessibleMonthlyUnlimited: "{used} messages used this month"
        case .accessibleUntil: "{used} of {limit} messages used in the period until {date}"
        case .accessibleUntilUnlimited: "{used} messages used in the period until {date}"
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
        case .gentleUntil: "You have {remaining} conversation left until {date}"
        case .gentleLifetime: "You have {remaining} conversation left"
        case .prominent: "Almost there — {remaining} message left until {date}"
        case .prominentUndated: "Almost there — {remaining} message left"
        case .window: "{remaining} message left for the next {wait}"
        case .accessibleMonthlyUnlimited: "{used} message used this month"
        case .accessibleUntilUnlimited: "{used} message used in the period until {date}"
        case .accessibleLifetimeUnlimited: "{used} message used"
        case .accessiblePastUnlimited: "{used} message used in {period}"
        default: nil
        }
    }

    /// The number that chooses between `one` and `other`; nil for a sentence that has one form.
    func number(in values: Phrase.Values) -> Int? {
        switch self {
        case .gentle, .gentleUntil, .gentleLifetime, .prominent, .prominentUndated, .trial, .window:
            values.allowance.remaining
        case .accessibleMonthly, .accessibleMonthlyUnlimited, .accessibleUntil, .accessibleUntilUnlimited,
            .accessibleTrial, .accessibleLifetime, .accessibleLifetimeUnlimited, .accessiblePast,
            .accessiblePastUnlimited:
            values.allowance.used
        default: nil
        }
    }
}
