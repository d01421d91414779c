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
    /// A limit for the messages with the model is used up.
    case modelLimitReached = "model_limit_reached"
    case modelExceedsRemaining = "model_exceeds_remaining"
    /// A limit for the messages of the member is used up.
    case memberLimitReached = "member_limit_reached"
    case memberExceedsRemaining = "member_exceeds_remaining"
    case trialEnded = "trial_ended"
    case expired, revoked
    case billingRetry = "billing_retry"
    case noSubscription = "no_subscription"

    /// Whether some messages are left in an allowance, and more were requested.
    var isExceeded: Bool { Allowance.Name.allCases.contains { $0.exceededReason == self } }

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
        case .model: .modelLimitReached
        case .member: .memberLimitReached
        }
    }

    /// The reason of a refusal because fewer messages are left than were requested.
    var exceededReason: DenialReason {
        switch self {
        case .period: .exceedsRemaining
        case .window: .windowExceedsRemaining
        case .model: .modelExceedsRemaining
        case .member: .memberExceedsRemaining
        }
    }
}
