/// `headroom top --by`: the models or members of all accounts with the most messages in a billing period.
public struct TopPartsTable: Sendable {
    public struct Part: Sendable, Equatable, Encodable {
        public let name: String
        public let label: String?
        public let period: String
        public let used: Int
        public let held: Int
        public let accounts: Int
        public let blocked: Int
        public let account: String?

        public init(
            name: String,
            label: String?,
            period: String,
            used: Int,
            held: Int,
            accounts: Int,
            blocked: Int,
            account: String?
        ) {
            self.name = name
            self.label = label
            self.period = period
            self.used = used
            self.held = held
            self.accounts = accounts
            self.blocked = blocked
            self.account = account
        }

        /// Every part has the same names: a missing value is null.
        public func encode(to encoder: any Encoder) throws {
            let values: [String: FieldValue] = [
                "name": .text(name), "label": FieldValue(label), "period": .text(period), "used": .integer(used),
                "held": .integer(held), "accounts": .integer(accounts), "blocked": .integer(blocked),
                "account": FieldValue(account),
            ]
            try values.encode(to: encoder)
        }
    }

    /// The most messages first.
    public let parts: [Part]

    public init(_ parts: [Part]) {
        self.parts = parts
    }

    /// - Parameter width: of the terminal; nil: none, so each part is a line.
    public func text(width: Int?) -> String {
        var table = TextTable([.left, .left, .left, .right, .right, .right, .right, .left])
        table.add("name", "label", "period", "used", "held", "accounts", "blocked", "account")
        for part in parts {
            table.add(
                printable(part.name),
                printable(part.label ?? "-"),
                printable(part.period),
                grouped(part.used),
                grouped(part.held),
                grouped(part.accounts),
                grouped(part.blocked),
                part.account ?? "-"
            )
        }
        return table.records(width: width)
    }
}
