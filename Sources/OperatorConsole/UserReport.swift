/// `headroom user`: a user's usage, now and in earlier periods.
public struct UserReport: Sendable, Encodable {
    /// The answer to USAGE.
    public let usage: Record
    /// The answer to HISTORY.
    public let history: [Record]
    /// The answer to ALLOWANCES.
    public let allowances: [Record]

    public init(usage: Record, history: [Record], allowances: [Record]) {
        self.usage = usage
        self.history = history
        self.allowances = allowances
    }

    public var text: String { text(width: nil) }

    /// - Parameter width: of the terminal; nil: none, so each subject is a line.
    public func text(width: Int?) -> String {
        var table = TextTable([.left, .left])
        table.add("user", usage.text("user") ?? "")
        table.add("plan", plan)
        table.add("usage", usage.text("accessible") ?? "")
        if usage.count("held") > 0 { table.add("held", "\(grouped(usage.count("held"))) reserved, counting as used") }
        table.add("remaining", remaining)
        if let reason = usage.text("reason") { table.add("no access", reason) }
        table.add("tier", "\(usage.text("tier") ?? ""), shown as \(usage.text("display") ?? "")")
        if let notice = usage.text("notice") { table.add("notice", notice) }
        if let banner = usage.text("banner") { table.add("banner", banner) }
        let sections = [table.fields(width: width), parts(width: width), history.isEmpty ? "no messages yet" : periods]
        return sections.compactMap(\.self).joined(separator: "\n\n")
    }

    /// `Premium (paid), cancelled, ends 2026-12-01T00:00:00Z, pro before`
    private var plan: String {
        var parts = ["\(usage.text("label") ?? "") (\(usage.text("plan") ?? ""))", usage.text("state") ?? ""]
        if let expires = usage.text("expires") { parts.append("ends \(expires)") }
        if let renews = usage.text("renews") {
            let next = usage.text("next_plan").map { " as \($0)" } ?? ""
            parts.append("renews \(renews)\(next)")
        }
        if let price = usage.text("price") { parts.append("\(price) \(usage.text("currency") ?? "")") }
        if let graceUntil = usage.text("grace_until") { parts.append("in grace until \(graceUntil)") }
        if let previous = usage.text("previous_plan") { parts.append("\(previous) before") }
        return parts.joined(separator: ", ")
    }

    private var remaining: String {
        var parts = [usage.allowance("remaining")]
        // Instants of one form sort like their texts. If access ends before the reset, nothing comes back.
        let end = usage.text("expires") ?? usage.text("grace_until")
        if let resets = usage.text("resets"), end.map({ $0 > resets }) ?? true {
            parts.append("the allowance comes back \(resets)")
        }
        return parts.joined(separator: ", ")
    }

    /// The most members that the text lists. JSON has all members of an account.
    private static let membersMaximum = 20

    /// The models, and the members with the most messages; nil without any.
    private func parts(width: Int?) -> String? {
        guard !allowances.isEmpty else { return nil }
        let models = allowances.filter { $0.text("kind") == "model" }
        let members = allowances.filter { $0.text("kind") == "member" }.sorted { $0.count("used") > $1.count("used") }
        var table = TextTable([.left, .left, .right, .right, .right, .left, .left, .right, .left])
        table.add("part", "name", "used", "held", "limit", "tier", "window", "weight", "fallback")
        for part in models + members.prefix(UserReport.membersMaximum) {
            table.add(
                part.text("kind") ?? "",
                part.text("name") ?? "",
                grouped(part.count("used")),
                grouped(part.count("held")),
                part.allowance("limit"),
                part.text("tier") ?? "",
                window(part),
                grouped(part.count("weight")),
                part.text("fallback") ?? "-"
            )
        }
        let more = members.count - UserReport.membersMaximum
        return table.records(width: width) + (more > 0 ? "\nand \(grouped(more)) more members" : "")
    }

    /// `48 of 50, until 2026-11-21T19:30:00Z`
    private func window(_ part: Record) -> String {
        guard part.values["window_limit"] != nil else { return "-" }
        let end = part.text("window_resets").map { ", until \($0)" } ?? ""
        return "\(grouped(part.count("window_used"))) of \(grouped(part.count("window_limit")))\(end)"
    }

    private var periods: String {
        var table = TextTable([.left, .right, .right, .left])
        table.add("period", "used", "limit", "tier")
        for period in history {
            table.add(
                period.text("period") ?? "",
                grouped(period.count("used")),
                period.allowance("limit"),
                period.text("tier") ?? ""
            )
        }
        return table.lines.joined(separator: "\n")
    }
}
