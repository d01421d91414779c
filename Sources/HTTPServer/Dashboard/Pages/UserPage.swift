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
        var grantReason: String?
        var resetReason: String?
        var messagesError: String?
        var grantReasonError: String?
        var resetReasonError: String?
    }

    var frame: Frame
    var user: String
    var notices: [Notice]
    var usage: Usage?
    var texts: Texts?
    var actions: Actions?
    var chart: ChartSection?
    var periods: [Period]
    var hasPeriods: Bool
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
