/// How long to wait before the next try: each failure doubles it, and chance takes up to half of it away, so that those who
/// failed together do not come back together.
struct Backoff: Sendable {
    let range: ClosedRange<Duration>

    /// - Parameter failures: before this one.
    func pause(after failures: Int, using generator: inout some RandomNumberGenerator) -> Duration {
        // 2^20 times the shortest is longer than anybody wants to wait.
        let whole = min(range.lowerBound * (1 << min(max(failures, 0), 20)), range.upperBound)
        return whole / 2 + whole / 2 * Double.random(in: 0..<1, using: &generator)
    }
}
