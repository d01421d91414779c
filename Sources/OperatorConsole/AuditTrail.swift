/// `headroom audit`: the changes to a user, each with its time, actor and reason.
public struct AuditTrail: Sendable {
    /// A row of the view audit_trail.
    public struct Event: Sendable, Equatable, Encodable {
        /// The instant of the change, as ISO 8601 in UTC.
        public let at: String
        public let what: String
        public let detail: String?
        public let actor: String?
        public let reason: String?

        public init(at: String, what: String, detail: String?, actor: String?, reason: String?) {
            self.at = at
            self.what = what
            self.detail = detail
            self.actor = actor
            self.reason = reason
        }

        /// Every event has the same names: a missing value is null.
        public func encode(to encoder: any Encoder) throws {
            let values: [String: FieldValue] = [
                "at": .text(at), "what": .text(what), "detail": FieldValue(detail), "actor": FieldValue(actor),
                "reason": FieldValue(reason),
            ]
            try values.encode(to: encoder)
        }
    }

    /// The events, the oldest first.
    public let events: [Event]

    public init(_ events: [Event]) {
        self.events = events
    }

    /// - Parameter width: of the terminal; nil: none, so each event is a line.
    public func text(width: Int?) -> String {
        var table = TextTable([.left, .left, .left, .left, .left])
        table.add("at", "what", "by", "why", "detail")
        for event in events {
            table.add(
                event.at,
                printable(event.what),
                printable(event.actor ?? "-"),
                printable(event.reason ?? "-"),
                printable(event.detail ?? "-")
            )
        }
        return table.records(width: width)
    }
}
