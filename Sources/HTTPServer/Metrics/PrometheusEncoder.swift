/// Encodes metrics in Prometheus's text format, version 0.0.4.
struct PrometheusEncoder {
    static let contentType = "text/plain; version=0.0.4; charset=utf-8"

    private(set) var text = ""

    /// A family with its samples. Without any, the family is left out.
    mutating func write(_ metric: Metric, _ samples: [Metric.Sample]) {
        guard !samples.isEmpty else { return }
        text += "# HELP \(metric.name) \(PrometheusEncoder.escaped(metric.meaning, quotes: false))\n"
        text += "# TYPE \(metric.name) \(metric.kind.rawValue)\n"
        for (values, value) in samples {
            let labels = Array(zip(metric.labels, values))
            for line in value.lines {
                write(metric.name + line.suffix, labels + (line.bound.map { [("le", $0)] } ?? []), line.number)
            }
        }
    }

    private mutating func write(_ name: String, _ labels: [(name: String, value: String)], _ number: String) {
        text += name
        if !labels.isEmpty {
            let pairs = labels.map { "\($0.name)=\"\(PrometheusEncoder.escaped($0.value, quotes: true))\"" }
            text += "{" + pairs.joined(separator: ",") + "}"
        }
        text += " \(number)\n"
    }

    /// Escapes backslashes and line ends, and in label values also quotes.
    private static func escaped(_ text: String, quotes: Bool) -> String {
        let escaped = text.replacing("\\", with: "\\\\").replacing("\n", with: "\\n")
        return quotes ? escaped.replacing("\"", with: "\\\"") : escaped
    }
}
