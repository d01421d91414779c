import Usage

/// The fields of the form that sets a plan.
struct PlanFields: Equatable, Sendable {
    var plan: String
    /// Nil is the plan's initial state.
    var state: SubscriptionState?
    /// Nil is no end, or the end that follows from the plan and the state.
    var expiresAt: Instant?

    /// The states in which a plan can be set, in the order of the form.
    static let states: [SubscriptionState] = [
        .active, .cancelled, .gracePeriod, .billingRetry, .expired, .revoked, .trial, .free,
    ]

    /// - Parameter plans: nil if they cannot be read.
    init(_ fields: [String: String], plans: [Plan]?) throws(ActionForm.InvalidField) {
        plan = ActionForm.trimmed(fields["plan"] ?? "")
        let known = plans?.first { [plan] in $0.name == plan }
        guard Plan.isName(plan), plans == nil || known != nil else {
            throw ActionForm.InvalidField(field: "plan", message: "Choose one of the plans.")
        }
        let stateName = fields["state"] ?? ""
        state = SubscriptionState(rawValue: stateName)
        guard stateName.isEmpty || state != nil else {
            throw ActionForm.InvalidField(field: "state", message: "Choose one of the states.")
        }
        if let known, let state, !known.admits(state) {
            let admitted = PlanFields.states.filter(known.admits).map(\.rawValue.spaced).joined(separator: ", ")
            throw ActionForm.InvalidField(field: "state", message: "This plan can only be: \(admitted).")
        }
        let end = ActionForm.trimmed(fields["expires"] ?? "")
        expiresAt = Instant(end)
        guard end.isEmpty || expiresAt != nil else {
            throw ActionForm.InvalidField(
                field: "expires",
                message: "Enter a day, such as 2026-12-24, or an instant, such as 2026-12-24T18:00:00Z."
            )
        }
    }

    func change(of user: UserID) -> PlanChange {
        PlanChange(user: user, plan: plan, state: state, expiresAt: expiresAt)
    }

    /// The fields as the form sends them.
    var fields: [(name: String, value: String)] {
        [("plan", plan)] + (state.map { [("state", $0.rawValue)] } ?? [])
            + (expiresAt.map { [("expires", $0.text)] } ?? [])
    }
}
