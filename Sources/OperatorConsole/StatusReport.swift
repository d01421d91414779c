import Foundation

/// `headroom status`: the state of a service.
public struct StatusReport: Sendable {
    private let info: ServiceInfo
    private let target: String

    public init(_ info: ServiceInfo, target: String) {
        self.info = info
        self.target = target
    }

    public var text: String { text(width: nil) }

    /// - Parameter width: of the terminal; nil: none, so each subject is a line.
    public func text(width: Int?) -> String {
        var table = TextTable([.left, .left])
        table.add("service", "\(info.text("version") ?? "?") at \(target), up \(duration(info.count("uptime_s")))")
        table.add("database", database)
        table.add("lanes", lanes)
        table.add("connections", connections)
        table.add("answers", rates)
        table.add("", outcomes)
        table.add("", tiers)
        let verbs = info.counters("verb_")
        if !verbs.isEmpty { table.add("requests", StatusReport.list(verbs) { $0.uppercased() }) }
        let errors = info.counters("errors_")
        if !errors.isEmpty { table.add("errors", StatusReport.list(errors) { "-" + $0.uppercased() }) }
        return table.fields(width: width)
    }

    private var database: String {
        var parts = [info.text("database") ?? "?"]
        if let version = info.text("database_version") { parts.append("PostgreSQL \(version)") }
        if let schema = info.text("schema_version") { parts.append("schema \(schema)") }
        if let lag = info.number("replication_lag_s") {
            parts.append("the slowest standby \(String(format: "%.3f", lag)) s behind")
        }
        return parts.joined(separator: ", ")
    }

    private var lanes: String {
        "\(info.count("lanes_connected")) of \(info.count("lanes")) connected, \(grouped(info.count("queue_depth"))) "
            + "requests waiting, \(grouped(info.count("reconnects"))) reconnects"
    }

    private var connections: String {
        "\(grouped(info.count("connections"))) now, \(grouped(info.count("connections_total"))) in all, "
            + "\(grouped(info.count("connections_refused"))) refused"
    }

    private var rates: String {
        let rate = String(format: "%.1f", info.number("answers_per_second") ?? 0)
        guard info.values["latency_p50_us"] != nil else { return "\(rate) a second" }
        return "\(rate) a second, p50 \(milliseconds("latency_p50_us")), p99 \(milliseconds("latency_p99_us"))"
    }

    private func milliseconds(_ name: String) -> String {
        info.number(name).map { String(format: "%.2f ms", $0 / 1_000) } ?? "-"
    }

    private var outcomes: String {
        ["allowed", "blocked", "held", "ok"].map { "\(grouped(info.count("answers_" + $0))) \($0)" }
            .joined(separator: ", ") + ", \(grouped(info.count("errors"))) errors"
    }

    private var tiers: String {
        "by the user's tier: "
            + Tiers.names.map { "\(grouped(info.count("tier_" + $0))) \($0)" }.joined(separator: ", ")
    }

    private static func list(_ counters: [(name: String, count: Int)], _ label: (String) -> String) -> String {
        counters.map { "\(label($0.name)) \(grouped($0.count))" }.joined(separator: ", ")
    }
}

enum Tiers {
    static let names = ["silent", "gentle", "prominent", "blocked"]
}

/// `3 d 4 h`, `4 h 5 min`, `5 min 6 s`, `6 s`
func duration(_ seconds: Int) -> String {
    switch seconds {
    case 86_400...: "\(seconds / 86_400) d \(seconds % 86_400 / 3_600) h"
    case 3_600...: "\(seconds / 3_600) h \(seconds % 3_600 / 60) min"
    case 60...: "\(seconds / 60) min \(seconds % 60) s"
    default: "\(seconds) s"
    }
}
