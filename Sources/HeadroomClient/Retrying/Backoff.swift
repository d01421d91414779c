/// The pause before the next attempt. Each failure doubles it, and a random part of up to half is taken off, so that
/// clients that failed together do not retry together.
struct Backoff: Sendable {
    let range: ClosedRange<Duration>

    /// - Parameter failures: the failures before this one.
    func pause(after failures: Int, using generator: inout some RandomNumberGenerator) -> Duration {
        // 2^20 times 1 ms is 17 minutes, more than the upper bound may be.
        let whole = min(range.lowerBound * (1 << min(max(failures, 0), 20)), range.upperBound)
        return whole / 2 + whole / 2 * Double.random(in: 0..<1, using: &generator)
    }

    /// The pause before an attempt to return to an endpoint, while another one answers: the upper bound, doubled by
    /// each failure five times at most, and up to half more at random.
    func returnPause(after failures: Int, using generator: inout some RandomNumberGenerator) -> Duration {
        range.upperBound * (1 << min(max(failures, 0), 5)) * Double.random(in: 1..<1.5, using: &generator)
    }
}
