/// A line on a terminal.
public struct ScreenLine: Sendable, Equatable {
    /// An emphasis is shown by colour. The text must say the same, because not everybody sees colours.
    public enum Emphasis: Sendable {
        case none, heading, aside, warning, alarm
    }

    public var text: String
    public var emphasis: Emphasis

    public init(text: String, emphasis: Emphasis = .none) {
        self.text = text
        self.emphasis = emphasis
    }
}

extension TopSample {
    /// Lines that fit a terminal. A table that is too wide is split or loses columns; what still does not fit is cut
    /// off.
    ///
    /// - Parameters:
    ///   - problem: an error since the sample was taken.
    ///   - footer: the last line.
    public func screen(width: Int, height: Int, problem: String? = nil, footer: String? = nil) -> [ScreenLine] {
        let isUp = info.text("database") == "up"
        var lines = wrapped(headline, width).map { ScreenLine(text: $0, emphasis: isUp ? .heading : .alarm) }
        lines.append(ScreenLine(text: ""))
        let summary = "\(rate(perSecond)) answers a second, p50 \(latency("p50")), p99 \(latency("p99"))"
        lines += wrapped(summary, width).map { ScreenLine(text: $0) }
        lines.append(ScreenLine(text: ""))
        lines += answers(width).map { ScreenLine(text: $0) }
        lines.append(ScreenLine(text: ""))
        if let problem {
            lines += wrapped(problem, width).map { ScreenLine(text: $0, emphasis: .alarm) }
            lines.append(ScreenLine(text: ""))
        }
        lines += users(width)
        if let footer, height > 2 {
            lines =
                Array(lines.prefix(height - 2)) + [ScreenLine(text: ""), ScreenLine(text: footer, emphasis: .aside)]
        }
        return lines.prefix(max(1, height)).map { line in
            ScreenLine(text: String(line.text.prefix(max(1, width))), emphasis: line.emphasis)
        }
    }

    /// The screen as plain text.
    public func lines(width: Int, height: Int, problem: String? = nil) -> [String] {
        screen(width: width, height: height, problem: problem).map(\.text)
    }

    private var headline: String {
        "headroom \(info.text("version") ?? "?") at \(target), up \(duration(info.count("uptime_s"))); database "
            + "\(info.text("database") ?? "?"), \(info.count("lanes_connected")) of \(info.count("lanes")) lanes, "
            + "\(grouped(info.count("queue_depth"))) waiting; \(grouped(info.count("connections"))) connections"
    }

    /// Tiers and outcomes side by side, or one below the other if that is too wide.
    private func answers(_ width: Int) -> [String] {
        let rows = { (names: [String], prefix: String) in
            names.map { (String($0.dropFirst(prefix.count)), $0) }
        }
        let tiers = rows(TopSample.tiers, "tier_")
        let outcomes = rows(TopSample.outcomes, "answers_") + [("errors", "errors")]
        var both = TextTable([.left, .right, .right, .left, .left, .right, .right])
        both.add("tier", "a second", "since start", "", "outcome", "a second", "since start")
        for (index, outcome) in outcomes.enumerated() {
            let right = (outcome.0, rate(outcome.1), grouped(info.count(outcome.1)))
            if index < tiers.count {
                let tier = tiers[index]
                both.add(tier.0, rate(tier.1), grouped(info.count(tier.1)), "", right.0, right.1, right.2)
            } else {
                both.add("", "", "", "", right.0, right.1, right.2)
            }
        }
        if both.width <= width { return both.lines }
        var below = TextTable([.left, .right, .right])
        below.add("tier", "a second", "since start")
        for tier in tiers { below.add(tier.0, rate(tier.1), grouped(info.count(tier.1))) }
        below.add("outcome", "a second", "since start")
        for outcome in outcomes { below.add(outcome.0, rate(outcome.1), grouped(info.count(outcome.1))) }
        return below.lines
    }

    private func users(_ width: Int) -> [ScreenLine] {
        guard let busiest else { return [ScreenLine(text: "searching for the busiest users", emphasis: .aside)] }
        guard !busiest.isEmpty else {
            return wrapped("no user has sent a message in an open period", width).map { ScreenLine(text: $0) }
        }
        let whole = table(of: busiest, period: true) { $0 }
        let tables = [
            whole, table(of: busiest, period: false) { $0 }, table(of: busiest, period: true) { "\($0.prefix(8))…" },
        ]
        let table = tables.first { $0.width <= width } ?? self.table(of: busiest, period: false) { "\($0.prefix(8))…" }
        return zip(table.lines, [nil] + busiest.map { $0.text("tier") }).map { line, tier in
            switch tier {
            case "prominent": ScreenLine(text: line, emphasis: .warning)
            case "blocked": ScreenLine(text: line, emphasis: .alarm)
            default: ScreenLine(text: line)
            }
        }
    }

    private func table(of users: [Record], period: Bool, _ name: (String) -> String) -> TextTable {
        var table = TextTable(period ? [.left, .left, .right, .right, .left] : [.left, .right, .right, .left])
        table.add(row: ["busiest user"] + (period ? ["period"] : []) + ["used", "limit", "tier"])
        for user in users {
            table.add(
                row: [name(user.text("user") ?? "")] + (period ? [user.text("period") ?? ""] : [])
                    + [grouped(user.count("used")), user.allowance("limit"), user.text("tier") ?? ""]
            )
        }
        return table
    }
}

/// A sentence in lines of at most `width`: broken after semicolons, or between words where a clause is longer. A word
/// that is longer stays whole.
func wrapped(_ text: String, _ width: Int) -> [String] {
    var lines: [String] = []
    let clauses = text.split(separator: "; ").map(String.init)
    for (index, clause) in clauses.enumerated() {
        let clause = index < clauses.count - 1 ? clause + ";" : clause
        if let last = lines.last, last.count + 1 + clause.count <= width {
            lines[lines.count - 1] += " " + clause
            continue
        }
        var line = ""
        for word in clause.split(separator: " ") {
            if line.isEmpty {
                line = String(word)
            } else if line.count + 1 + word.count <= width {
                line += " " + word
            } else {
                lines.append(line)
                line = String(word)
            }
        }
        lines.append(line)
    }
    return lines
}
