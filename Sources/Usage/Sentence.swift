/// The sentences for users, in a warm first person, and the words that dates and waits are made of.
///
/// The templates here are the English ones. `headroom migrate` writes them, and those of `ShippedWords`, to the table
/// `headroom.words`, where operators edit them. The service reads them from there (`Words`).
public enum Sentence: String, Sendable, CaseIterable {
    case gentle
    case gentleUntil = "gentle_until"
    case gentleWait = "gentle_wait"
    case gentleLifetime = "gentle_lifetime"
    case prominent
    case prominentWait = "prominent_wait"
    case prominentUndated = "prominent_undated"
    case lifetime
    case trial
    case trialLastDay = "trial_last_day"
    case exceedsUntil = "exceeds_until"
    case exceedsWait = "exceeds_wait"
    case exceedsUndated = "exceeds_undated"
    case blockedMonthly = "blocked_monthly"
    case blockedMonthlyUndated = "blocked_monthly_undated"
    case blockedUntil = "blocked_until"
    case blockedWait = "blocked_wait"
    case blockedUndated = "blocked_undated"
    case blockedLifetime = "blocked_lifetime"
    case blockedNoMessages = "blocked_no_messages"
    case blockedTrial = "blocked_trial"
    case blockedTrialEnded = "blocked_trial_ended"
    case blockedNoAccess = "blocked_no_access"
    case blockedNeverSubscribed = "blocked_never_subscribed"
    case blockedEnded = "blocked_ended"
    case blockedRefunded = "blocked_refunded"
    case blockedBillingRetry = "blocked_billing_retry"
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
    case accessibleWait = "accessible_wait"
    case accessibleWaitUnlimited = "accessible_wait_unlimited"
    case accessibleTrial = "accessible_trial"
    case accessibleLifetime = "accessible_lifetime"
    case accessibleLifetimeUnlimited = "accessible_lifetime_unlimited"
    case accessiblePast = "accessible_past"
    case accessiblePastUnlimited = "accessible_past_unlimited"
    case window
    case blockedWindow = "blocked_window"
    case unreadable
    case uncounted
    case unlimited
    case date
    case dateWithYear = "date_with_year"
    case month1 = "month_1"
    case month2 = "month_2"
    case month3 = "month_3"
    case month4 = "month_4"
    case month5 = "month_5"
    case month6 = "month_6"
    case month7 = "month_7"
    case month8 = "month_8"
    case month9 = "month_9"
    case month10 = "month_10"
    case month11 = "month_11"
    case month12 = "month_12"
    case days
    case hours
    case minutes
    case waitJoined = "wait_joined"

    /// The English template for numbers other than 1, with blanks in braces.
    public var other: String {
        switch self {
        case .gentle: "You have {remaining} conversations left this month"
        case .gentleUntil: "You have {remaining} conversations left until {date}"
        case .gentleWait: "You have {remaining} conversations left for the next {wait}"
        case .gentleLifetime: "You have {remaining} conversations left"
        case .prominent: "Almost there — {remaining} messages left until {date}"
        case .prominentWait: "Almost there — {remaining} messages left for the next {wait}"
        case .prominentUndated: "Almost there — {remaining} messages left"
        case .lifetime: "{used} of {limit} messages used"
        case .trial: "{remaining} of {limit} trial messages remaining"
        case .trialLastDay: "Your trial ends {date} — {remaining} of {limit} messages are left."
        case .exceedsUntil: "That needs {requested} messages, and {remaining} are left until {date}."
        case .exceedsWait: "That needs {requested} messages, and {remaining} are left for the next {wait}."
        case .exceedsUndated: "That needs {requested} messages, and {remaining} are left."
        case .blockedMonthly:
            "We've had a lot of great conversations this month! Your next session refreshes on {date}."
        case .blockedMonthlyUndated: "We've had a lot of great conversations this month!"
        case .blockedUntil: "We've had a lot of great conversations! Your next session refreshes on {date}."
        case .blockedWait: "We've had a lot of great conversations! Your next session refreshes in {wait}."
        case .blockedUndated: "We've had a lot of great conversations!"
        case .blockedLifetime: "You've used all {limit} messages."
        case .blockedNoMessages: "Your plan has no room for messages right now. A larger one opens our conversations."
        case .blockedTrial: "You've used your trial sessions — ready to continue?"
        case .blockedTrialEnded: "Your trial has ended — ready to continue?"
        case .blockedNoAccess: "Ready to come back? Your conversations are still here."
        case .blockedNeverSubscribed: "Ready to begin? A subscription opens our conversations."
        case .blockedEnded: "Your time with {label} ended on {date} — shall we go on?"
        case .blockedRefunded:
            "Your subscription is no longer active, so I have to stop here for now. You can subscribe again anytime."
        case .blockedBillingRetry: "We're on a short pause until your payment goes through. I'll be right here."
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
        case .accessibleWait: "{used} of {limit} messages used; the next period begins in {wait}"
        case .accessibleWaitUnlimited: "{used} messages used; the next period begins in {wait}"
        case .accessibleTrial: "{used} of {limit} trial messages used"
        case .accessibleLifetime: "{used} of {limit} messages used"
        case .accessibleLifetimeUnlimited: "{used} messages used"
        case .accessiblePast: "{used} of {limit} messages used in {period}"
        case .accessiblePastUnlimited: "{used} messages used in {period}"
        case .window: "{remaining} messages left for the next {wait}"
        case .blockedWindow: "Let's take a short break. I'm here for you again in {wait}."
        case .unreadable: "I couldn't check your usage right now. Let's try again in a moment."
        case .uncounted: "I couldn't check your usage right now — don't worry, you can keep chatting."
        case .unlimited: "unlimited"
        case .date: "{month} {day}"
        case .dateWithYear: "{date}, {year}"
        case .month1: "January"
        case .month2: "February"
        case .month3: "March"
        case .month4: "April"
        case .month5: "May"
        case .month6: "June"
        case .month7: "July"
        case .month8: "August"
        case .month9: "September"
        case .month10: "October"
        case .month11: "November"
        case .month12: "December"
        case .days: "{n} days"
        case .hours: "{n} hours"
        case .minutes: "{n} minutes"
        case .waitJoined: "{larger} {smaller}"
        }
    }

    /// The English template for the number 1; nil if it is `other`.
    public var one: String? {
        switch self {
        case .gentle: "You have {remaining} conversation left this month"
        case .gentleUntil: "You have {remaining} conversation left until {date}"
        case .gentleWait: "You have {remaining} conversation left for the next {wait}"
        case .gentleLifetime: "You have {remaining} conversation left"
        case .prominent: "Almost there — {remaining} message left until {date}"
        case .prominentWait: "Almost there — {remaining} message left for the next {wait}"
        case .prominentUndated: "Almost there — {remaining} message left"
        case .trialLastDay: "Your trial ends {date} — {remaining} of {limit} messages is left."
        case .exceedsUntil: "That needs {requested} messages, and {remaining} is left until {date}."
        case .exceedsWait: "That needs {requested} messages, and {remaining} is left for the next {wait}."
        case .exceedsUndated: "That needs {requested} messages, and {remaining} is left."
        case .blockedLifetime: "You've used your {limit} message."
        case .accessibleMonthlyUnlimited: "{used} message used this month"
        case .accessibleUntilUnlimited: "{used} message used in the period until {date}"
        case .accessibleWaitUnlimited: "{used} message used; the next period begins in {wait}"
        case .accessibleLifetimeUnlimited: "{used} message used"
        case .accessiblePastUnlimited: "{used} message used in {period}"
        case .window: "{remaining} message left for the next {wait}"
        case .days: "{n} day"
        case .hours: "{n} hour"
        case .minutes: "{n} minute"
        default: nil
        }
    }

    /// The templates in English.
    var english: WordForms { WordForms(one: one, other: other) }

    static let months: [Sentence] = [
        .month1, .month2, .month3, .month4, .month5, .month6, .month7, .month8, .month9, .month10, .month11, .month12,
    ]
}
