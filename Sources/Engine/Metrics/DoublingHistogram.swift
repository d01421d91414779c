/// Counts whole numbers in buckets whose bounds are powers of two, and their sum. One thread records, any thread reads.
/// The bucket of a number follows from its leading zeros.
///
/// The latencies have a type of their own, `LatencyBuckets`, which is sixteen times finer and truncates. A size must be
/// in the bucket that it bounds, because Prometheus' `le` includes it. One type for both would cost the latencies an
/// addition per message.
public final class DoublingHistogram: Sendable {
    /// Bucket n counts numbers above 2ⁿ⁻¹ and up to 2ⁿ; the last one counts all larger numbers, too.
    public static let bucketCount = 33

    private let cells = CounterCells(count: bucketCount + 1)

    public init() {}

    /// Records a number. Only the one writing thread may call it.
    public func record(_ value: UInt64) {
        cells.increment(DoublingHistogram.bucket(of: value))
        cells.add(value, to: DoublingHistogram.bucketCount)
    }

    /// Records a time in microseconds, rounded up, so that it never exceeds the bound of its bucket.
    ///
    /// - Parameter duration: a time. A negative one, after a clock was set back, counts as 0.
    public func record(_ duration: Duration) {
        let (seconds, attoseconds) = duration.components
        let microseconds = seconds * 1_000_000 + (attoseconds + 999_999_999_999) / 1_000_000_000_000
        record(UInt64(max(0, microseconds)))
    }

    static func bucket(of value: UInt64) -> Int {
        value <= 1 ? 0 : min(64 - (value - 1).leadingZeroBitCount, bucketCount - 1)
    }

    public var counts: BucketCounts {
        let values = cells.values
        return BucketCounts(counts: Array(values.dropLast()), sum: values[DoublingHistogram.bucketCount])
    }
}

/// The counts of a `DoublingHistogram` at one moment.
public struct BucketCounts: Sendable, Equatable {
    /// The count of each bucket, not cumulative.
    public var counts: [UInt64]
    public var sum: UInt64

    public init(counts: [UInt64] = Array(repeating: 0, count: DoublingHistogram.bucketCount), sum: UInt64 = 0) {
        self.counts = counts
        self.sum = sum
    }

    public var count: UInt64 { counts.reduce(0, &+) }

    public static func + (one: BucketCounts, other: BucketCounts) -> BucketCounts {
        BucketCounts(counts: zip(one.counts, other.counts).map { $0 &+ $1 }, sum: one.sum &+ other.sum)
    }
}
