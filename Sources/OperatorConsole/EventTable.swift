/// `headroom events list`: billing events and their outcomes.
public struct EventTable: Sendable {
    /// A row of headroom.billing_events. Instants are ISO 8601, UTC.
    public struct Event: Sendable, Equatable, Encodable {
        public let source: String
        public let id: String
        public let type: String
        public let at: String
        public let receivedAt: String
        public let user: String?
        public let outcome: String
        public let problem: String?
        public let attempts: Int

        public init(
            source: String,
            id: String,
            type: String,
            at: String,
            receivedAt: String,
            user: String?,
            outcome: String,
            problem: String?,
            attempts: Int
        ) {
            self.source = source
            self.id = id
            self.type = type
            self.at = at
            self.receivedAt = receivedAt
            self.user = user
            self.outcome = outcome
            self.problem = problem
            self.attempts = attempts
        }

        /// Every event has the same names: a missing value is null.
        public func encode(to encoder: any Encoder) throws {
            let values: [String: FieldValue] = [
                "source": .text(source), "id": .text(id), "type": .text(type), "at": .text(at),
                "received_at": .text(receivedAt), "user": FieldValue(user), "outcome": .text(outcome),
                "problem": FieldValue(problem), "attempts": .integer(attempts),
            ]
            try values.encode(to: encoder)
        }
    }

    /// The outcome of an event that was applied again.
    public struct Replay: Sendable, Equatable, Encodable {
        public let source: String
        public let id: String
        public let outcome: String
        public let problem: String?

        public init(source: String, id: String, outcome: String, problem: String?) {
            self.source = source
            self.id = id
            self.outcome = outcome
            self.problem = problem
        }

        public func encode(to encoder: any Encoder) throws {
            let values: [String: FieldValue] = [
                "source": .text(source), "id": .text(id), "outcome": .text(outcome), "problem": FieldValue(problem),
            ]
            try values.encode(to: encoder)
        }

        public var text: String {
            printable("\(source) \(id) \(outcome)" + (problem.map { ": \($0)" } ?? ""))
        }
    }

    public let events: [Event]

    public init(_ events: [Event]) {
        self.events = events
    }

    /// - Parameter width: of the terminal; nil: none, so each event is a line.
    public func text(width: Int?) -> String {
        var table = TextTable([.left, .left, .left, .left, .left, .left, .left])
        table.add("at", "source", "id", "type", "user", "outcome", "problem")
        for event in events {
            table.add(
                event.at,
                event.source,
                printable(event.id),
                printable(event.type),
                event.user ?? "-",
                event.outcome,
                printable(event.problem ?? "-")
            )
        }
        return table.records(width: width)
    }

    /// Indented JSON without characters that control a terminal.
    public static func printableLines(_ indented: String) -> String {
        indented.split(separator: "\n", omittingEmptySubsequences: false).map { printable(String($0)) }
            .joined(separator: "\n")
    }
}
