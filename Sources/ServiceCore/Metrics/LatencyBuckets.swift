/// Microseconds in buckets: exact below 32, then sixteen buckets for each doubling, so that a bucket is at most one
/// sixteenth of its values wide. The same division as HdrHistogram's, with its arithmetic reduced to a count of leading
/// zeros and a shift, because it is computed for every answer.
package enum LatencyBuckets {
    /// Each doubling has sixteen buckets.
    private static var subdivisionBits: Int { 4 }

    /// The number of buckets for every UInt32, which is over an hour.
    package static var count: Int { index(of: .max) + 1 }

    @inline(__always)
    static func index(of microseconds: UInt32) -> Int {
        // Below 32 the shift is 0 and the value is its own index.
        let exponent = max(0, 31 - subdivisionBits - (microseconds | 1).leadingZeroBitCount)
        return exponent << subdivisionBits + Int(microseconds >> UInt32(exponent))
    }

    /// The largest value of the bucket.
    package static func maximum(of index: Int) -> UInt32 {
        let exponent = max(0, index >> subdivisionBits - 1)
        let first = UInt32(index - exponent << subdivisionBits)
        return (first + 1) << UInt32(exponent) &- 1
    }

    /// The lowest bucket maximum that at least `percent` of the counts do not exceed; nil when nothing was counted.
    package static func percentile(_ percent: Double, of counts: [UInt64]) -> UInt32? {
        let total = counts.reduce(0, &+)
        guard total > 0 else { return nil }
        let wanted = max(1, UInt64((Double(total) * percent / 100).rounded(.up)))
        var seen: UInt64 = 0
        for (index, count) in counts.enumerated() {
            seen += count
            if seen >= wanted { return maximum(of: index) }
        }
        return nil
    }
}
