import Engine

/// One store event, and the form that replays it.
struct EventPage {
    var frame: Frame
    var notices: [Notice]
    var details: [UserPage.Detail]
    var user: String?
    var problem: String?
    /// A class of the stylesheet.
    var outcomeState: String
    var outcome: String
    /// Nil for a viewer that may not change anything, and without stored contents.
    var replay: Replay?

    struct Replay {
        var source: String
        var id: String
        var actor: String
        var replayReason: UserPage.ReasonField
    }

    static func path(of name: BillingEventLog.Name) -> String {
        "/dashboard/event?" + FormFields.query([("source", name.source), ("id", name.id)])
    }

    /// A class of the stylesheet.
    static func state(of outcome: String) -> String {
        switch outcome {
        case "applied": "good"
        case "failed": "bad"
        case "waiting": "warning"
        default: "neutral"
        }
    }
}
