/// A billing period in figures.
struct PeriodSummary {
    struct TierRow {
        /// Also a class of the stylesheet.
        var name: String
        var meaning: String
        var users: String
        /// The list of these users; nil if there are none.
        var link: String?
        /// What the link leads to, beginning with its visible text.
        var linkLabel: String
        var share: String
    }

    var messages: String
    var users: String
    var average: String
    var blocked: String
    var blockedShare: String
    var hasBlocked: Bool
    var bar: String
    var tiers: [TierRow]
    var age: String
}

/// A column chart, and the same numbers as a table.
struct ChartSection {
    struct Row {
        var name: String
        var link: String?
        var messages: String
        var blocked: String?
        var users: String?
        var isUnfinished: Bool
    }

    var svg: String
    /// The heading of the table's first column.
    var unit: String
    var hasBlocked: Bool
    var rows: [Row]
    var note: String?
    var age: String
}

/// The users with the most messages in a period.
struct TopUsersSection {
    struct Row {
        var rank: String
        var user: String
        /// The label of a second or later period in a month or week; nil for the first.
        var period: String?
        var used: String
        var limit: String
        var share: String
        var tier: String
    }

    var rows: [Row]
    var age: String
}

/// Plans with their users in a period, and the present trials.
struct PlansSection {
    struct Row {
        var label: String
        /// The name in requests.
        var name: String?
        var allowance: String
        /// The plan's limits for models and members, as sentences.
        var limits: [String]
        var users: String
        /// The list of the plan's users; nil if there are none, or for rows without a plan.
        var link: String?
        /// What the link leads to, beginning with its visible text.
        var linkLabel: String
        var messages: String
        var blocked: String
        /// Rows are sorted by it.
        var userCount: Int
    }

    struct Trials {
        /// Of the plan.
        var label: String
        var running: String
        var usedUp: String
        var over: String
    }

    var trials: [Trials]
    /// Which plans are unenforced, and what they would have refused; nil if none is.
    var unenforced: String?
    var rows: [Row]
    var hasRows: Bool
    /// Plans with fewer users are left out.
    var isTruncated: Bool
    var age: String
}

/// The newest store events that could not be applied.
struct FailedEventsSection {
    struct Event {
        /// The page where the event can be replayed; nil for a viewer that may not change anything.
        var replayLink: String?
        var at: TimeText
        var source: String
        var type: String
        var user: String?
        var problem: String
    }

    /// `3 store events`
    var count: String
    var events: [Event]
    var age: String
}

/// Instructions for an installation that has counted no message yet.
struct FirstSteps {
    /// A shell command that counts a first message; nil where the port is not known in advance.
    var command: String?
}
