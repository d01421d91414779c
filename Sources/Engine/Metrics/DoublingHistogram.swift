/// Whole numbers in buckets of which each reaches twice as far as the one before it, and their sum. One thread records, any
/// thread reads.
///
/// Powers of two, because the bucket of a number is then a count of its leading zeros.
public final class DoublingHistogram: Sendable {
    /// Bucket n takes what is at most 2ⁿ and more than 2ⁿ⁻¹; the last one takes all that is larger.
    public static let bucketCount = 33

    private let cells = CounterCells(count: bucketCount + 1)

    public init() {}

    /// By the one writing thread only.
    public func record(_ value: UInt64) {
        cells.raise(DoublingHistogram.bucket(of: value))
        cells.add(value, to: DoublingHistogram.bucketCount)
    }

    /// A time, in microseconds that have begun: so a bucket's bound is never below what is in it.
    ///
    /// - Parameter duration: a negative one, of a clock that somebody set, counts as none.
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

/// What a `DoublingHistogram` held at one moment.
public struct BucketCounts: Sendable, Equatable {
    /// Of each bucket by itself.
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
