import Histogram

/// A histogram of durations in nanoseconds, exact to three digits or half a microsecond.
struct Latencies: Sendable {
    /// The longest duration. Longer ones count as this long, and in `clamped`.
    static let maximum: UInt64 = 60_000_000_000

    private var histogram = Histogram<UInt64>(
        lowestDiscernibleValue: 1_000,
        highestTrackableValue: Latencies.maximum,
        numberOfSignificantValueDigits: .three
    )
    private(set) var clamped = 0

    /// An empty histogram to copy, because making a new one takes longer.
    static let none = Latencies()

    var count: UInt64 { histogram.totalCount }
    var maximum: UInt64 { histogram.maxRecorded }
    var minimum: UInt64 { histogram.min }
    var mean: Double { histogram.mean }

    @inline(__always)
    mutating func record(_ nanoseconds: UInt64) {
        if nanoseconds > Latencies.maximum { clamped += 1 }
        histogram.record(min(nanoseconds, Latencies.maximum))
    }

    mutating func add(_ other: Latencies) {
        histogram.add(other.histogram)
        clamped += other.clamped
    }

    /// The percentile in nanoseconds.
    func percentile(_ percent: Double) -> UInt64 {
        histogram.valueAtPercentile(percent)
    }
}
