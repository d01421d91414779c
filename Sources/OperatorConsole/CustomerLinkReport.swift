/// `headroom customer link`: the events that it applied, and what the user has now.
public struct CustomerLinkReport: Sendable {
    /// The user, by the name that the command was given.
    public var user: String
    /// False if it was the user's already.
    public var isNew: Bool
    /// The number of events of each outcome that the link gave them.
    public var events: [String: Int]
    /// The user's plan; nil if there is no subscription.
    public var plan: String?
    public var state: String?
    public var expires: String?

    public init(
        user: String,
        isNew: Bool,
        events: [String: Int],
        plan: String?,
        state: String?,
        expires: String?
    ) {
        self.user = user
        self.isNew = isNew
        self.events = events
        self.plan = plan
        self.state = state
        self.expires = expires
    }

    /// `2 events applied, 1 outdated; ada: paid, active until 2026-12-24T09:30:00Z`
    public var text: String {
        guard isNew else { return printable("nothing changed; it belongs to \(user) already") }
        return printable("\(outcomes); \(user): \(subscription)")
    }

    private var outcomes: String {
        let known = ["applied", "waiting", "outdated", "ignored", "failed"].filter { events[$0] != nil }
        guard !known.isEmpty else { return "no event waited for a user" }
        return known.map { outcome in
            let count = events[outcome] ?? 0
            let noun = outcome == known.first ? (count == 1 ? " event" : " events") : ""
            return "\(grouped(count))\(noun) \(outcome)"
        }.joined(separator: ", ")
    }

    private var subscription: String {
        guard let plan else { return "no subscription" }
        return [plan, [state, expires].compactMap(\.self).joined(separator: " until ")].joined(separator: ", ")
    }
}
