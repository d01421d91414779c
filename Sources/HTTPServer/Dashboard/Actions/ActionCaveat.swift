import Usage

/// Why a user cannot send messages after an action: a grant or a reset restores only a used-up allowance, and a plan
/// can be set without access.
enum ActionCaveat: Equatable, Sendable {
    case noAccess(DenialReason)
    /// A grant to a user whose plan has no limit.
    case noLimit

    /// - Returns: nil if the user can send messages after the action, or is forgotten.
    init?(_ action: ActionForm.Action, _ snapshot: UsageSnapshot) {
        if action == .forget {
            return nil
        } else if let denialReason = snapshot.denialReason {
            self = .noAccess(denialReason)
        } else if case .grant = action, snapshot.limit == nil {
            self = .noLimit
        } else {
            return nil
        }
    }

    /// Stands for the caveat in a URL.
    var name: String {
        switch self {
        case .noAccess(let denialReason): denialReason.rawValue
        case .noLimit: "unlimited"
        }
    }

    init?(name: String) {
        if name == ActionCaveat.noLimit.name {
            self = .noLimit
        } else if let denialReason = DenialReason(rawValue: name) {
            self = .noAccess(denialReason)
        } else {
            return nil
        }
    }

    /// Ends a sentence about the user.
    var ending: String {
        switch self {
        case .noAccess: "has no access."
        case .noLimit: "has no limit."
        }
    }

    var text: String {
        switch self {
        case .noAccess(.trialEnded):
            "The trial has ended, so no more messages can be sent in it; a purchase or SETPLAN gives access."
        case .noAccess(.expired): "The subscription has expired; \(ActionCaveat.later)"
        case .noAccess(.revoked): "The subscription is revoked; \(ActionCaveat.later)"
        case .noAccess(.billingRetry): "A payment failed; \(ActionCaveat.later)"
        case .noAccess:
            "There is no subscription; \(ActionCaveat.later)"
        case .noLimit: "A grant has no effect while the plan is unlimited."
        }
    }

    private static let later = "this has an effect only if access is restored within the same period."

    var notice: Notice { Notice(.warning, "This user \(ending)", text) }
}
