/// The sentences for users, in a warm first person, and the words that dates and waits are made of.
///
/// The files of `Words/Languages` have their texts. `headroom migrate` writes these to the table `headroom.words`,
/// where operators edit them. The service reads them from there (`Words`).
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
    case modelUntil = "model_until"
    case modelWait = "model_wait"
    case modelUndated = "model_undated"
    case blockedModelUntil = "blocked_model_until"
    case blockedModelWait = "blocked_model_wait"
    case blockedModelUndated = "blocked_model_undated"
    case blockedModelNoMessages = "blocked_model_no_messages"
    case fallback
    case blockedMemberUntil = "blocked_member_until"
    case blockedMemberWait = "blocked_member_wait"
    case blockedMemberUndated = "blocked_member_undated"
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

    static let months: [Sentence] = [
        .month1, .month2, .month3, .month4, .month5, .month6, .month7, .month8, .month9, .month10, .month11, .month12,
    ]
}
