/// How fast a lane takes requests while it is busy: how long those who come now have to wait. Sans-IO; part of `LaneQueue`.
///
/// Known only while the lane is busy. After it slept, nothing is known, and nobody is refused for what was before.
struct DrainRate {
    private struct Carried {
        var requests = 0
        var seconds = 0.0
    }

    /// The last loads, so that one that took exceptionally long is forgotten after a few others.
    private var recent: [Carried] = []
    private var oldest = 0
    private var sum = Carried()
    private var underWay: (requests: Int, since: ContinuousClock.Instant)?
    private let loadMaximum: Int

    private static let loadsRemembered = 8
    /// Before that, one load's luck would decide.
    private static let loadsMinimum = 2

    /// - Parameter loadMaximum: requests that go together at most.
    init(loadMaximum: Int) {
        self.loadMaximum = loadMaximum
        recent.reserveCapacity(DrainRate.loadsRemembered)
    }

    /// A load leaves with so many requests; the one before it is done.
    ///
    /// - Parameter leavesSome: requests stayed behind. A load that took everything could have taken more in the same time.
    mutating func take(_ requests: Int, leavesSome: Bool, at now: ContinuousClock.Instant) {
        if let underWay {
            remember(Carried(requests: underWay.requests, seconds: (now - underWay.since) / .seconds(1)))
        }
        underWay = (leavesSome ? requests : max(requests, loadMaximum), now)
    }

    private mutating func remember(_ carried: Carried) {
        if recent.count < DrainRate.loadsRemembered {
            recent.append(carried)
        } else {
            recent[oldest] = carried
            oldest = (oldest + 1) % DrainRate.loadsRemembered
        }
        // Added up anew: differences of seconds would leave errors behind.
        sum = recent.reduce(into: Carried()) {
            $0.requests += $1.requests
            $0.seconds += $1.seconds
        }
    }

    /// The lane found nothing to do, or nothing to do it with.
    mutating func rest() {
        recent.removeAll(keepingCapacity: true)
        (oldest, sum, underWay) = (0, Carried(), nil)
    }

    private var isKnown: Bool { recent.count >= DrainRate.loadsMinimum && sum.requests > 0 && sum.seconds > 0 }

    /// Requests that are taken within so many seconds; nil where that is not known.
    func taken(withinSeconds limit: Double) -> Int? {
        isKnown ? Int(min(Double(sum.requests) / sum.seconds * limit, 1e9)) : nil
    }

    /// How long so many wait; nil where that is not known.
    func milliseconds(toTake count: Int) -> Int? {
        isKnown ? Int(min(sum.seconds / Double(sum.requests) * Double(count) * 1_000, 1e9)) : nil
    }
}
