/// How fast a lane executes requests while it is busy, from which follows how long a new one waits. No I/O; part of
/// `LaneQueue`.
///
/// Unknown after the lane was idle: requests are not refused for an earlier backlog.
struct DrainRate {
    private struct Sample {
        var requests = 0
        var seconds = 0.0
    }

    /// The last batches, so that an exceptionally slow one is forgotten after a few others.
    private var samples: [Sample] = []
    private var oldest = 0
    private var sum = Sample()
    private var underWay: (requests: Int, since: ContinuousClock.Instant)?
    private let batchMaximum: Int

    private static let samplesMaximum = 8
    /// With fewer, a single batch would decide.
    private static let samplesMinimum = 2

    /// - Parameter batchMaximum: requests in one batch at most.
    init(batchMaximum: Int) {
        self.batchMaximum = batchMaximum
        samples.reserveCapacity(DrainRate.samplesMaximum)
    }

    /// A batch of this many requests begins; the previous one has ended.
    ///
    /// - Parameter leavesSome: whether requests still wait. A batch without any could have had more in the same time.
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
        // Computed anew: repeated differences of seconds would accumulate rounding errors.
        sum = samples.reduce(into: Sample()) {
            $0.requests += $1.requests
            $0.seconds += $1.seconds
        }
    }

    /// The lane is idle or disconnected.
    mutating func reset() {
        samples.removeAll(keepingCapacity: true)
        (oldest, sum, underWay) = (0, Sample(), nil)
    }

    private var isKnown: Bool { samples.count >= DrainRate.samplesMinimum && sum.requests > 0 && sum.seconds > 0 }

    /// Requests that are executed in this many seconds; nil where unknown.
    func executed(withinSeconds limit: Double) -> Int? {
        isKnown ? Int(min(Double(sum.requests) / sum.seconds * limit, 1e9)) : nil
    }

    /// How long this many requests take; nil where unknown.
    func milliseconds(toExecute count: Int) -> Int? {
        isKnown ? Int(min(sum.seconds / Double(sum.requests) * Double(count) * 1_000, 1e9)) : nil
    }
}
