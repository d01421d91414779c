/// How fast a lane takes requests while it is busy: how long those who come now have to wait. Sans-IO; part of `LaneQueue`.
///
/// Known only while the lane is busy. After it slept, nothing is known, and nobody is refused for what was before.
struct DrainRate {
    private var requests = 0.0
    private var seconds = 0.0
    private var underWay: (count: Int, since: ContinuousClock.Instant)?
    private let loadMaximum: Int

    /// Older loads count half each time so much has been measured. One that took exceptionally long is forgotten after a
    /// few others.
    private static let windowSeconds = 0.25
    /// Before that, one load's luck would decide.
    private static let loadsMinimum = 2
    private var loads = 0

    /// - Parameter loadMaximum: requests that go together at most.
    init(loadMaximum: Int) {
        self.loadMaximum = loadMaximum
    }

    /// A load leaves with so many requests; the one before it is done.
    ///
    /// - Parameter leavesSome: requests stayed behind. A load that took everything could have taken more in the same time.
    mutating func take(_ count: Int, leavesSome: Bool, at now: ContinuousClock.Instant) {
        if let underWay {
            requests += Double(underWay.count)
            seconds += (now - underWay.since) / .seconds(1)
            loads += 1
            if seconds > DrainRate.windowSeconds {
                requests /= 2
                seconds /= 2
            }
        }
        underWay = (leavesSome ? count : max(count, loadMaximum), now)
    }

    /// The lane found nothing to do, or nothing to do it with.
    mutating func rest() {
        (requests, seconds, loads, underWay) = (0, 0, 0, nil)
    }

    /// Requests that are taken within so many seconds; nil where that is not known.
    func taken(withinSeconds limit: Double) -> Int? {
        guard loads >= DrainRate.loadsMinimum, seconds > 0 else { return nil }
        return Int(min(requests / seconds * limit, 1e9))
    }

    /// How long so many wait; nil where that is not known.
    func milliseconds(toTake count: Int) -> Int? {
        guard loads >= DrainRate.loadsMinimum, requests > 0 else { return nil }
        return Int(min(seconds / requests * Double(count) * 1_000, 1e9))
    }
}
