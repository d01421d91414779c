import Engine

/// Writes figures as Prometheus reads them: its text format, version 0.0.4.
///
/// Families come one after the other, each with HELP and TYPE; histograms with cumulative buckets, sum and count.
struct MetricsText {
    static let contentType = "text/plain; version=0.0.4; charset=utf-8"

    private(set) var text = ""

    /// A sample's number, as text: whole numbers and decimals are written exactly.
    struct Value: ExpressibleByIntegerLiteral {
        fileprivate let text: String

        init(_ number: some BinaryInteger) { text = "\(number)" }
        init(integerLiteral number: Int) { text = "\(number)" }
        init(_ flag: Bool) { text = flag ? "1" : "0" }

        /// - Parameter microseconds: written as seconds.
        init(microseconds: UInt64) { text = MetricsText.seconds(microseconds) }
    }

    /// A family without labels.
    mutating func write(_ metric: Metric, _ value: Value) {
        write(metric, [([], value)])
    }

    /// A family with a sample for each of its labels' values; without any it is left out.
    mutating func write(_ metric: Metric, _ samples: [(labels: [String], value: Value)]) {
        guard !samples.isEmpty else { return }
        head(metric)
        for (labels, value) in samples {
            sample(metric.name, Array(zip(metric.labels, labels)), value.text)
        }
    }

    /// What the numbers in a histogram's buckets are.
    enum Unit {
        /// Told in seconds.
        case microseconds
        case requests

        /// Bounds are 2ⁿ of the unit. Times: 16 µs to 8 s; a batch has 4,096 requests at most.
        fileprivate var bounds: ClosedRange<Int> {
            switch self {
            case .microseconds: 4...23
            case .requests: 0...12
            }
        }

        fileprivate func text(_ number: UInt64) -> String {
            switch self {
            case .microseconds: MetricsText.seconds(number)
            case .requests: "\(number)"
            }
        }
    }

    mutating func write(_ metric: Metric, _ unit: Unit, _ histograms: [(labels: [String], counts: BucketCounts)]) {
        guard !histograms.isEmpty else { return }
        head(metric)
        for (values, counts) in histograms {
            let labels = Array(zip(metric.labels, values))
            // Of one reading of the counters, so that the last bucket is the count, whatever is counted meanwhile.
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
        text += "# HELP \(metric.name) \(MetricsText.escaped(metric.meaning, quotes: false))\n"
        text += "# TYPE \(metric.name) \(metric.kind.rawValue)\n"
    }

    private mutating func sample(_ name: String, _ labels: [(name: String, value: String)], _ value: String) {
        text += name
        if !labels.isEmpty {
            let pairs = labels.map { "\($0.name)=\"\(MetricsText.escaped($0.value, quotes: true))\"" }
            text += "{" + pairs.joined(separator: ",") + "}"
        }
        text += " \(value)\n"
    }

    /// Backslashes and line ends, and in a label's value quotes as well.
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
