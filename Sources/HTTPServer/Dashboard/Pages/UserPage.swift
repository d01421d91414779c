import Usage

/// One user's usage, its history, and an operator's actions.
struct UserPage {
    struct Usage {
        /// `640 of 800`
        var used: String
        var sentence: String
        var bar: String?
        var state: String
        /// A class of the stylesheet.
        var stateClass: String
        var tier: String
        /// A class of the stylesheet; empty where the subscription's state matters more than the tier.
        var tierClass: String
        var details: [Detail]
    }

    /// A name with a text or an instant.
    struct Detail {
        var name: String
        var text: String?
        var time: TimeText?
        var more: String?
        /// An http or https address.
        var link: String?
    }

    /// The texts that the product shows to this user.
    struct Texts {
        /// The model or member whose messages have these texts; nil for those of messages without one.
        var about: String?
        var display: String
        var banner: String?
        var notice: String?
        var steps: String?
        var label: String
        var isEmpty: Bool
    }

    struct Period {
        var name: String
        var used: String
        var limit: String
        var share: String
        var tier: String
        var isCurrent: Bool
    }

    struct Subscription {
        var transaction: String
        var plan: String
        var started: TimeText?
        var expires: TimeText?
        var more: String?
    }

    struct Event {
        /// The page where the event can be replayed. Nil if it did not fail, or if the viewer may not change anything.
        var replayLink: String?
        var at: TimeText
        var source: String
        var type: String
        var outcome: String
        /// A class of the stylesheet.
        var outcomeState: String
        var problem: String?
        var detail: String?
    }

    struct Change {
        var at: TimeText
        var kind: String
        /// The values that differ, each with its old value; all values of a row that was added or removed.
        var changed: String?
        var unchanged: String?
        var actor: String?
        var reason: String?
    }

    /// The operator's forms, with rejected input to be corrected.
    struct Actions {
        var user: String
        var csrfToken: String
        /// Nil while usage cannot be read.
        var period: String?
        var grantCaveat: Notice?
        var resetCaveat: Notice?
        var messages: String?
        var messagesError: String?
        var grantReason = ReasonField(id: "grant-reason")
        var resetReason = ReasonField(id: "reset-reason")
        /// Nil unless a model or a member is shown alone.
        var resetChoice: PartChoice?
        /// Whether a window is open, of all messages or of the model or member that is shown alone.
        var hasWindow = false
        /// Nil unless that of a model or a member is open.
        var windowChoice: PartChoice?
        var windowReason = ReasonField(id: "window-reason")
        var forgetReason = ReasonField(id: "forget-reason")
        /// Nil while the plans cannot be read.
        var plan: PlanForm?
    }

    /// What an action is about: all messages, or those of a model or a member.
    struct PartChoice {
        /// It is the id of the HTML element.
        var id: String
        var label: String
        var options: [Option]
    }

    /// The reason for the audit log.
    struct ReasonField {
        /// It is the id of the HTML element.
        var id: String
        var value: String?
        var error: String?
    }

    struct Option {
        var value: String
        var text: String
        var isSelected: Bool
    }

    struct PlanForm {
        var plans: [Option]
        var states: [Option]
        var expires: String?
        var planError: String?
        var stateError: String?
        var expiresError: String?
        var planReason: ReasonField
    }

    var frame: Frame
    var user: String
    var notices: [Notice]
    var usage: Usage?
    /// Nil if the plan limits no models and no members.
    var parts: PartsSection?
    var texts: Texts?
    var actions: Actions?
    var chart: ChartSection?
    var periods: [Period]
    var hasPeriods: Bool
    /// There are none, or they cannot be read.
    var periodsPlaceholder: String
    var recordsPlaceholder: String?
    var hasRecords: Bool
    var subscriptions: [Subscription]
    var hasSubscriptions: Bool
    var events: [Event]
    var hasEvents: Bool
    var changes: [Change]
    var hasChanges: Bool
    /// The list of changes has reached its maximum; there may be older ones.
    var isTruncated: Bool
}

extension UserPage.Option {
    init(plan: Plan, isSelected: Bool) {
        self.init(value: plan.name, text: "\(plan.label.isolated) (\(plan.name))", isSelected: isSelected)
    }
}

extension UserPage.PlanForm {
    /// - Parameters:
    ///   - selectedPlan: the name of a plan.
    ///   - selectedState: the name of a state; nil is the plan's initial one.
    init(
        plans: [Plan],
        selectedPlan: String?,
        selectedState: String? = nil,
        expires: String? = nil,
        planError: String? = nil,
        stateError: String? = nil,
        expiresError: String? = nil,
        planReason: UserPage.ReasonField = UserPage.ReasonField(id: "plan-reason")
    ) {
        self.plans = plans.map { UserPage.Option(plan: $0, isSelected: $0.name == selectedPlan) }
        let initial = UserPage.Option(value: "", text: "the plan’s initial state", isSelected: selectedState == nil)
        states =
            [initial]
            + PlanFields.states.map {
                UserPage.Option(
                    value: $0.rawValue,
                    text: $0.rawValue.spaced,
                    isSelected: $0.rawValue == selectedState
                )
            }
        self.expires = expires
        self.planError = planError
        self.stateError = stateError
        self.expiresError = expiresError
        self.planReason = planReason
    }
}
