import Engine

/// The value of a metric's sample: a number, a flag or a histogram.
protocol SampleValue {
    var lines: [SampleLine] { get }
}

/// A line of a sample. Only a histogram has several.
struct SampleLine {
    /// What follows the name of the family.
    var suffix = ""
    /// The bound of a histogram's bucket.
    var bound: String?
    var number: String
}

extension SampleValue {
    var lines: [SampleLine] { [SampleLine(number: "\(self)")] }
}

extension Int: SampleValue {}
extension Int64: SampleValue {}
extension UInt32: SampleValue {}
extension UInt64: SampleValue {}

extension Bool: SampleValue {
    var lines: [SampleLine] { (self ? 1 : 0).lines }
}

/// Microseconds that are written as seconds.
struct Seconds: SampleValue, CustomStringConvertible {
    var microseconds: UInt64

    /// A decimal without trailing zeros, exact to the microsecond.
    var description: String {
        let (whole, rest) = microseconds.quotientAndRemainder(dividingBy: 1_000_000)
        guard rest > 0 else { return "\(whole)" }
        var digits = String(repeating: "0", count: 6 - "\(rest)".count) + "\(rest)"
        while digits.hasSuffix("0") { digits.removeLast() }
        return "\(whole).\(digits)"
    }
}

struct Histogram: SampleValue {
    /// The unit of the values.
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
            case .microseconds: "\(Seconds(microseconds: number))"
            case .requests: "\(number)"
            }
        }
    }

    let unit: Unit
    let counts: BucketCounts

    init(_ unit: Unit, _ counts: BucketCounts) {
        self.unit = unit
        self.counts = counts
    }

    var lines: [SampleLine] {
        // All values come from one copy of the counters, so that the last bucket equals the count.
        let total = "\(counts.count)"
        var cumulative = counts.counts[..<unit.bounds.lowerBound].reduce(0, &+)
        let buckets = unit.bounds.map { bound in
            cumulative &+= counts.counts[bound]
            return SampleLine(suffix: "_bucket", bound: unit.text(1 << UInt64(bound)), number: "\(cumulative)")
        }
        return buckets + [
            SampleLine(suffix: "_bucket", bound: "+Inf", number: total),
            SampleLine(suffix: "_sum", number: unit.text(counts.sum)),
            SampleLine(suffix: "_count", number: total),
        ]
    }
}
