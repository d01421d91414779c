/// Why a message was refused.
public enum DenialReason: String, Sendable, CaseIterable {
    case limitReached = "limit_reached"
    case trialLimitReached = "trial_limit_reached"
    /// Some messages remain, and more were requested.
    case exceedsRemaining = "exceeds_remaining"
    /// The window is used up, and the period is not.
    case windowLimitReached = "window_limit_reached"
    /// Some messages remain in the window, and more were requested.
    case windowExceedsRemaining = "window_exceeds_remaining"
    case trialEnded = "trial_ended"
    case expired, revoked
    case billingRetry = "billing_retry"
    case noSubscription = "no_subscription"

    /// The allowance of which some messages are left, and more were requested; nil for other reasons.
    var exceededAllowance: Allowance.Name? { Allowance.Name.allCases.first { $0.exceededReason == self } }

    /// Whether the user has access and too few messages are left; otherwise the user may send nothing.
    public var isAboutAllowance: Bool {
        self == .trialLimitReached
            || Allowance.Name.allCases.contains { $0.usedUpReason == self || $0.exceededReason == self }
    }
}

extension Allowance.Name {
    /// The reason of a refusal because nothing is left.
    var usedUpReason: DenialReason {
        switch self {
        case .period: .limitReached
        case .window: .windowLimitReached
        }
    }

    /// The reason of a refusal because fewer messages are left than were requested.
    var exceededReason: DenialReason {
        switch self {
        case .period: .exceedsRemaining
        case .window: .windowExceedsRemaining
        }
    }
}
