import Foundation

/// The distribution of the gaps between requests of an open loop.
public enum Arrivals: String, Sendable, CaseIterable {
    /// Exponential gaps, as from many independent users.
    case poisson
    /// Equal gaps.
    case even
}

/// When requests are due, independent of the answers to earlier ones, in nanoseconds of the clock of `start`.
struct ArrivalSchedule {
    /// When the next request is due.
    private(set) var due: UInt64
    private let start: UInt64
    private let arrivals: Arrivals
    /// The average gap in nanoseconds.
    private let gap: Double
    /// Nanoseconds from the start to the next request. A Double is exact to below a microsecond for years, so rounding
    /// errors of the gaps do not add up.
    private var offset: Double
    private var random: SeededRandom

    /// - Parameters:
    ///   - rate: requests per second of all workers together.
    ///   - worker: the number of this worker, from 0; evenly spaced arrivals of all workers interleave.
    init(_ arrivals: Arrivals, rate: Double, start: UInt64, worker: Int = 0, of workers: Int = 1, random: SeededRandom)
    {
        self.arrivals = arrivals
        self.start = start
        self.random = random
        gap = 1e9 * Double(workers) / rate
        offset = gap * Double(worker) / Double(workers)
        due = start
        if arrivals == .poisson { offset = exponentialGap() }
        due = start + UInt64(offset)
    }

    mutating func advance() {
        switch arrivals {
        case .poisson: offset += exponentialGap()
        case .even: offset += gap
        }
        due = start + UInt64(offset)
    }

    private mutating func exponentialGap() -> Double {
        -log(random.unit()) * gap
    }
}
