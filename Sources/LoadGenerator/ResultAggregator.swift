/// Combines the results of all event loops.
struct ResultAggregator {
    private let workers: Int
    /// Seconds that not every worker has reported yet.
    private var open: [Int: (second: Second, reports: Int)] = [:]
    private(set) var series: [SecondLine] = []
    private(set) var tally = Tally()
    private(set) var latencies = Latencies.none
    private(set) var results: [WorkerResult] = []

    init(workers: Int) {
        self.workers = workers
    }

    /// - Returns: the seconds that every worker has reported now.
    mutating func add(_ number: Int, _ second: Second) -> [SecondLine] {
        tally.add(second.tally)
        latencies.add(second.latencies)
        var entry = open[number] ?? (Second(), 0)
        entry.second.tally.add(second.tally)
        entry.second.latencies.add(second.latencies)
        entry.reports += 1
        open[number] = entry
        return entry.reports == workers ? [close(number)].compactMap(\.self) : []
    }

    /// - Returns: whether all workers have finished.
    mutating func add(_ result: WorkerResult) -> Bool {
        results.append(result)
        guard results.count == workers else { return false }
        // A worker that ended early has reported fewer seconds.
        for number in open.keys.sorted() { _ = close(number) }
        series.sort { $0.second < $1.second }
        // The last second of each worker is incomplete and may be empty.
        let seconds = results.map(\.seconds).max() ?? 0
        while let last = series.last, last.replies == 0, Double(last.second - 1) >= seconds { series.removeLast() }
        return true
    }

    private mutating func close(_ number: Int) -> SecondLine? {
        guard let (second, _) = open.removeValue(forKey: number) else { return nil }
        let line = SecondLine(number: number, second)
        series.append(line)
        return line
    }
}

/// A line of the series.
public struct SecondLine: Sendable, Equatable, Encodable {
    /// The second's number, from 1, after the warm-up.
    public var second: Int
    public var replies: Int
    /// The latency in milliseconds; null when there were no replies.
    public var p50: Nullable<Double>
    public var p99: Nullable<Double>
    public var errors: Int

    enum CodingKeys: String, CodingKey {
        case second, replies, errors
        case p50 = "p50_ms"
        case p99 = "p99_ms"
    }

    init(number: Int, _ result: Second) {
        second = number + 1
        replies = result.tally.replies
        errors = result.tally.errorCount
        let hasLatencies = result.latencies.count > 0
        p50 = Nullable(hasLatencies ? result.latencies.percentile(50).milliseconds : nil)
        p99 = Nullable(hasLatencies ? result.latencies.percentile(99).milliseconds : nil)
    }
}

public enum LoadProgress: Sendable {
    case connected(connections: Int, idle: Int)
    case second(SecondLine)
}
