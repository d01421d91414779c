import Engine

/// Encodes metrics in Prometheus's text format, version 0.0.4.
struct PrometheusEncoder {
    static let contentType = "text/plain; version=0.0.4; charset=utf-8"

    private(set) var text = ""

    /// A sample's number as text, exact for integers and decimals.
    struct Value: ExpressibleByIntegerLiteral {
        fileprivate let text: String

        init(_ number: some BinaryInteger) { text = "\(number)" }
        init(integerLiteral number: Int) { text = "\(number)" }
        init(_ flag: Bool) { text = flag ? "1" : "0" }

        /// - Parameter microseconds: written as seconds.
        init(microseconds: UInt64) { text = PrometheusEncoder.seconds(microseconds) }
    }

    /// A family without labels.
    mutating func write(_ metric: Metric, _ value: Value) {
        write(metric, [([], value)])
    }

    /// A family with one sample per combination of label values. Without samples, the family is left out.
    mutating func write(_ metric: Metric, _ samples: [(labels: [String], value: Value)]) {
        guard !samples.isEmpty else { return }
        head(metric)
        for (labels, value) in samples {
            sample(metric.name, Array(zip(metric.labels, labels)), value.text)
        }
    }

    /// The unit of a histogram's values.
    enum Unit {
        /// Written as seconds.
        case microseconds
        case requests

        /// Exponents of the buckets' bounds, 2ⁿ of the unit. Times: 16 µs to 8 s. A batch has at most 4,096 requests.
        fileprivate var bounds: ClosedRange<Int> {
            switch self {
            case .microseconds: 4...23
            case .requests: 0...12
            }
        }

        fileprivate func text(_ number: UInt64) -> String {
            switch self {
            case .microseconds: PrometheusEncoder.seconds(number)
            case .requests: "\(number)"
            }
        }
    }

    mutating func write(_ metric: Metric, _ unit: Unit, _ histograms: [(labels: [String], counts: BucketCounts)]) {
        guard !histograms.isEmpty else { return }
        head(metric)
        for (values, counts) in histograms {
            let labels = Array(zip(metric.labels, values))
            // All values come from one copy of the counters, so that the last bucket equals the count.
            let total = counts.count
            var cumulative = counts.counts[..<unit.bounds.lowerBound].reduce(0, &+)
            for bound in unit.bounds {
                cumulative &+= counts.counts[bound]
                sample(metric.name + "_bucket", labels + [("le", unit.text(1 << UInt64(bound)))], "\(cumulative)")
            }
            sample(metric.name + "_bucket", labels + [("le", "+Inf")], "\(total)")
            sample(metric.name + "_sum", labels, unit.text(counts.sum))
            sample(metric.name + "_count", labels, "\(total)")
        }
    }

    private mutating func head(_ metric: Metric) {
        text += "# HELP \(metric.name) \(PrometheusEncoder.escaped(metric.meaning, quotes: false))\n"
        text += "# TYPE \(metric.name) \(metric.kind.rawValue)\n"
    }

    private mutating func sample(_ name: String, _ labels: [(name: String, value: String)], _ value: String) {
        text += name
        if !labels.isEmpty {
            let pairs = labels.map { "\($0.name)=\"\(PrometheusEncoder.escaped($0.value, quotes: true))\"" }
            text += "{" + pairs.joined(separator: ",") + "}"
        }
        text += " \(value)\n"
    }

    /// Escapes backslashes and line ends, and in label values also quotes.
    private static func escaped(_ text: String, quotes: Bool) -> String {
        let escaped = text.replacing("\\", with: "\\\\").replacing("\n", with: "\\n")
        return quotes ? escaped.replacing("\"", with: "\\\"") : escaped
    }

    /// A decimal without trailing zeros, exact to the microsecond.
    private static func seconds(_ microseconds: UInt64) -> String {
        let (whole, rest) = microseconds.quotientAndRemainder(dividingBy: 1_000_000)
        guard rest > 0 else { return "\(whole)" }
        var digits = String(repeating: "0", count: 6 - "\(rest)".count) + "\(rest)"
        while digits.hasSuffix("0") { digits.removeLast() }
        return "\(whole).\(digits)"
    }
}
