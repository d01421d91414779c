import Foundation

/// How requests of an open loop follow each other.
public enum Arrivals: String, Sendable, CaseIterable {
    /// Exponential gaps, as many independent users make them.
    case poisson
    /// All gaps alike.
    case even
}

/// When requests are due, whatever becomes of those before them. In nanoseconds of the clock that `start` is of.
struct ArrivalSchedule {
    /// When the next one is due.
    private(set) var due: UInt64
    private let start: UInt64
    private let arrivals: Arrivals
    /// Nanoseconds between two on average.
    private let gap: Double
    /// Nanoseconds since the start, of the one that is due next. A Double has them to below a microsecond for years, so
    /// that nothing is lost by rounding each gap.
    private var offset: Double
    private var random: SeededRandom

    /// - Parameters:
    ///   - rate: requests per second, of all workers together.
    ///   - worker: which of so many workers this one is; evenly spaced arrivals of all of them interleave.
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
