import Usage

/// Why a grant or a reset does not let the user send: it mends an allowance that is used up, and nothing else.
enum ActionCaveat: Equatable, Sendable {
    case noAccess(Refusal)
    /// A grant to a user whose plan has no limit.
    case noLimit

    /// - Returns: nil where the user can send what is granted or reset.
    init?(_ action: ActionForm.Action, _ standing: Standing) {
        if let lapse = standing.lapse {
            self = .noAccess(lapse)
        } else if case .grant = action, standing.limit == nil {
            self = .noLimit
        } else {
            return nil
        }
    }

    /// As it travels in an address.
    var name: String {
        switch self {
        case .noAccess(let lapse): lapse.rawValue
        case .noLimit: "unlimited"
        }
    }

    init?(name: String) {
        if name == ActionCaveat.noLimit.name {
            self = .noLimit
        } else if let lapse = Refusal(rawValue: name) {
            self = .noAccess(lapse)
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
            "The trial has ended, so nothing can be sent in it any more; a purchase or SETPLAN gives access."
        case .noAccess(.expired): "The subscription has expired; \(ActionCaveat.later)"
        case .noAccess(.revoked): "The subscription is revoked; \(ActionCaveat.later)"
        case .noAccess(.billingRetry): "A payment failed; \(ActionCaveat.later)"
        case .noAccess(.noSubscription), .noAccess(.limitReached), .noAccess(.trialLimitReached):
            "There is no subscription; \(ActionCaveat.later)"
        case .noLimit: "A grant changes nothing as long as the plan is unlimited."
        }
    }

    private static let later = "this helps only if access comes back within the same period."

    var notice: Notice { Notice(.warning, "This user \(ending)", text) }
}
