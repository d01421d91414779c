/// `headroom report`: all users in one billing period.
public struct PeriodSummary: Sendable {
    /// The answer to REPORT.
    public let record: Record

    public init(_ record: Record) {
        self.record = record
    }

    public var isEmpty: Bool { record.count("users") == 0 }
    public var period: String { record.text("period") ?? "" }

    public var text: String {
        let users = record.count("users")
        var table = TextTable([.left, .right, .right])
        table.add(period, "", "")
        table.add("users", grouped(users), "")
        table.add("messages", grouped(record.count("messages")), "")
        for tier in Tiers.names {
            table.add(tier, grouped(record.count(tier)), percentage(record.count(tier), of: users))
        }
        return table.lines.joined(separator: "\n")
    }
}
