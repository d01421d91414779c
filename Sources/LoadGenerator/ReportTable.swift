import Foundation

extension LoadReport {
    /// The report as text for a terminal.
    public var table: String {
        var rows: [(String, String)] = []
        rows.append(("load", load))
        rows.append(("users", "\(users), \(distribution), seed \(seed)"))
        rows.append(("measured", String(format: "%.2f s, %d requests, %d replies", seconds, requests, replies)))
        rows.append(("per second", String(format: "%.0f", perSecond)))
        rows.append(("answers", "\(allowed) allowed, \(blocked) blocked, \(other) other"))
        for (code, count) in errors.sorted(by: { $0.key < $1.key }) { rows.append(("-\(code)", "\(count)")) }
        if dropped > 0 { rows.append(("dropped", "\(dropped)")) }
        if unanswered > 0 { rows.append(("unanswered", "\(unanswered)")) }
        if clamped > 0 { rows.append(("over 60 s", "\(clamped) latencies, counted as 60 s")) }
        let width = (rows.map(\.0.count).max() ?? 0) + 2
        var lines = rows.map { $0.0.padding(toLength: width, withPad: " ", startingAt: 0) + $0.1 }
        lines.append("")
        lines.append(LoadReport.row("ms", ["min", "mean", "p50", "p90", "p99", "p99.9", "p99.99", "max"]))
        if let latency = latency.value { lines.append(LoadReport.row("latency", latency)) }
        if let sendLag { lines.append(LoadReport.row("send lag", sendLag)) }
        lines.append("")
        lines.append(explanation)
        return lines.joined(separator: "\n")
    }

    private var load: String {
        let request = command.value ?? (verb.value ?? "").uppercased()
        let idle = idleConnections > 0 ? " and \(idleConnections) idle ones" : ""
        let pace =
            if let rate = rateOffered.value {
                "open loop, \(String(format: "%g", rate)) a second (\(arrivals.value ?? "")) over \(connections) connections"
            } else {
                "closed loop, \(connections) connections, \(pipeline.value ?? 1) in flight on each"
            }
        return "\(request) to \(target); \(pace)\(idle)"
    }

    private var explanation: String {
        mode == "open"
            ? "Latency counts from when a request was due: it has no coordinated omission."
            : """
            Latency counts from when a request was sent. While the service stalls, a closed loop sends nothing, so the
            waits of other users are missing (coordinated omission). For what users see, use --rate.
            """
    }

    private static func row(_ title: String, _ cells: [String]) -> String {
        title.padding(toLength: 10, withPad: " ", startingAt: 0)
            + cells.map { String(repeating: " ", count: max(1, 10 - $0.count)) + $0 }.joined()
    }

    private static func row(_ title: String, _ figures: Distribution) -> String {
        let cells = [
            figures.min, figures.mean, figures.p50, figures.p90, figures.p99, figures.p999, figures.p9999, figures.max,
        ]
        return row(title, cells.map { String(format: "%.3f", $0) })
    }
}

extension LoadProgress: CustomStringConvertible {
    public var description: String {
        switch self {
        case .connected(let connections, let idle):
            return "\(connections) connections are open" + (idle > 0 ? ", and \(idle) idle ones" : "")
        case .second(let line):
            func text(_ figure: Nullable<Double>) -> String { figure.value.map { String(format: "%.3f", $0) } ?? "-" }
            return "\(line.second) s  \(line.replies) replies  p50 \(text(line.p50)) ms  p99 \(text(line.p99)) ms  "
                + "errors \(line.errors)"
        }
    }
}
