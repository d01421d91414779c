/// How fast a lane executes requests while it is busy, from which follows how long a new one waits. It does no I/O; it
/// is a part of `LaneQueue`.
///
/// The rate is unknown after the lane was idle, so that requests are not refused for an earlier backlog.
struct DrainRate {
    private struct Sample {
        var requests = 0
        var seconds = 0.0
    }

    /// The last batches. They are few, so that an exceptionally slow one is soon forgotten.
    private var samples: [Sample] = []
    private var oldest = 0
    private var sum = Sample()
    private var underWay: (requests: Int, since: ContinuousClock.Instant)?
    private let batchMaximum: Int

    private static let samplesMaximum = 8
    /// The fewest batches for a rate. Otherwise a single batch would decide.
    private static let samplesMinimum = 2

    /// - Parameter batchMaximum: the most requests in one batch.
    init(batchMaximum: Int) {
        self.batchMaximum = batchMaximum
        samples.reserveCapacity(DrainRate.samplesMaximum)
    }

    /// Notes that a batch of this many requests begins, and that the previous one has ended.
    ///
    /// - Parameter leavesSome: whether requests still wait. If none does, the batch could have had more in that time.
    mutating func begin(_ requests: Int, leavesSome: Bool, at now: ContinuousClock.Instant) {
        if let underWay {
            add(Sample(requests: underWay.requests, seconds: (now - underWay.since) / .seconds(1)))
        }
        underWay = (leavesSome ? requests : max(requests, batchMaximum), now)
    }

    private mutating func add(_ sample: Sample) {
        if samples.count < DrainRate.samplesMaximum {
            samples.append(sample)
        } else {
            samples[oldest] = sample
            oldest = (oldest + 1) % DrainRate.samplesMaximum
        }
        // The sum is computed anew: repeated differences of seconds would accumulate rounding errors.
        sum = samples.reduce(into: Sample()) {
            $0.requests += $1.requests
            $0.seconds += $1.seconds
        }
    }

    /// Forgets the batches, because the lane is idle or disconnected.
    mutating func reset() {
        samples.removeAll(keepingCapacity: true)
        (oldest, sum, underWay) = (0, Sample(), nil)
    }

    private var isKnown: Bool { samples.count >= DrainRate.samplesMinimum && sum.requests > 0 && sum.seconds > 0 }

    /// The number of requests that are executed in this many seconds; nil if the rate is unknown.
    func executed(withinSeconds limit: Double) -> Int? {
        isKnown ? Int(min(Double(sum.requests) / sum.seconds * limit, 1e9)) : nil
    }

    /// How long this many requests take; nil if the rate is unknown.
    func milliseconds(toExecute count: Int) -> Int? {
        isKnown ? Int(min(sum.seconds / Double(sum.requests) * Double(count) * 1_000, 1e9)) : nil
    }
}
