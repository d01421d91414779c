import Usage

/// The counters of one lane. Its thread writes them, a few times per batch and never per message; any thread reads.
final class LaneMetrics: Sendable {
    let batchSizes = DoublingHistogram()
    /// The times for which the first request of each batch waited for the lane.
    let queueWaits = DoublingHistogram()
    private let statements = StatementKind.allCases.map { _ in DoublingHistogram() }
    private let counters = CounterCells(count: Counter.allCases.count)
    private let blockedByReason = CounterCells(count: DenialReason.allCases.count)

    enum Counter: Int, CaseIterable {
        /// The messages that were counted, each once.
        case messages
        /// The requests that were answered with `unknown`.
        case unknown
        /// The statements that waited in vain for a lock of another session.
        case lockTimeouts
    }

    func add(_ amount: Int, to counter: Counter) {
        if amount > 0 { counters.add(UInt64(amount), to: counter.rawValue) }
    }

    /// Counts a denied request to count or hold messages.
    func addBlocked(_ reason: DenialReason) {
        blockedByReason.increment(reason.ordinal)
    }

    func blocked(_ reason: DenialReason) -> UInt64 { blockedByReason[reason.ordinal] }

    /// The number of denied requests, whatever the reason.
    var blocked: UInt64 { DenialReason.allCases.reduce(0) { $0 &+ blocked($1) } }

    subscript(counter: Counter) -> UInt64 { counters[counter.rawValue] }

    /// Records the time of a statement whose reply arrives now.
    func record(_ kind: StatementKind, sentAt: ContinuousClock.Instant) {
        record(kind, took: .now - sentAt)
    }

    func record(_ kind: StatementKind, took duration: Duration) {
        statements[kind.rawValue].record(duration)
    }

    /// Counts the requests that were answered with `error` if it leaves their outcomes unknown.
    func countUnknownOutcomes(_ count: Int, after error: EngineError) {
        if error.code == .unknown { add(count, to: .unknown) }
    }

    func statementTimes(_ kind: StatementKind) -> BucketCounts { statements[kind.rawValue].counts }
}

/// The statements of lanes, by path.
public enum StatementKind: Int, CaseIterable, Sendable {
    /// A statement of the fast path, with keys or without.
    case count
    case slowPath
    /// A statement of the read path, or another that changes nothing.
    case read

    /// The value of the metric's label `statement`, which is documented.
    public var label: String {
        switch self {
        case .count: "count"
        case .slowPath: "perform"
        case .read: "read"
        }
    }
}

/// The sums over all lanes since the start.
public struct EngineMetrics: Sendable {
    /// The number of requests per batch.
    public var batchSizes = BucketCounts()
    /// The times before the first request of a batch was taken, in microseconds.
    public var queueWaits = BucketCounts()
    /// The times from sending to the complete result, in microseconds.
    public var statements: [(kind: StatementKind, times: BucketCounts)] = []
    public var messagesCounted: UInt64 = 0
    public var requestsBlocked: [(reason: DenialReason, requests: UInt64)] = []
    public var outcomesUnknown: UInt64 = 0
    /// The statements that waited in vain for a lock of another session.
    public var lockTimeouts: UInt64 = 0
    /// The number of waiting requests now, by lane.
    public var queueDepths: [Int] = []

    init(_ lanes: [Lane]) {
        let metrics = lanes.map(\.metrics)
        func sum(_ counts: (LaneMetrics) -> BucketCounts) -> BucketCounts {
            metrics.reduce(BucketCounts()) { $0 + counts($1) }
        }
        func sum(_ counter: LaneMetrics.Counter) -> UInt64 { metrics.reduce(0) { $0 &+ $1[counter] } }
        batchSizes = sum(\.batchSizes.counts)
        queueWaits = sum(\.queueWaits.counts)
        statements = StatementKind.allCases.map { kind in (kind, sum { $0.statementTimes(kind) }) }
        messagesCounted = sum(.messages)
        requestsBlocked = DenialReason.allCases.map { reason in
            (reason, metrics.reduce(0) { $0 &+ $1.blocked(reason) })
        }
        outcomesUnknown = sum(.unknown)
        lockTimeouts = sum(.lockTimeouts)
        queueDepths = lanes.map(\.queueDepth)
    }
}

extension DenialReason {
    fileprivate var ordinal: Int { DenialReason.allCases.firstIndex(of: self) ?? 0 }
}
