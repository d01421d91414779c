import Usage

/// Counters of one lane: written by its thread, a few times per batch and never per message; read from any thread.
final class LaneMetrics: Sendable {
    let batchSizes = DoublingHistogram()
    /// How long the first request of each batch waited for the lane.
    let queueWaits = DoublingHistogram()
    private let statements = StatementKind.allCases.map { _ in DoublingHistogram() }
    private let counters = CounterCells(count: Counter.allCases.count)
    private let blockedByReason = CounterCells(count: DenialReason.allCases.count)

    enum Counter: Int, CaseIterable {
        /// Messages counted, each once.
        case messages
        /// Requests answered with `unknown`.
        case unknown
        /// Statements that waited in vain for a lock of another session.
        case lockTimeouts
    }

    func add(_ amount: Int, to counter: Counter) {
        if amount > 0 { counters.add(UInt64(amount), to: counter.rawValue) }
    }

    /// A request to count or hold messages was denied.
    func addBlocked(_ reason: DenialReason) {
        blockedByReason.increment(reason.ordinal)
    }

    func blocked(_ reason: DenialReason) -> UInt64 { blockedByReason[reason.ordinal] }

    /// Whatever the reason.
    var blocked: UInt64 { DenialReason.allCases.reduce(0) { $0 &+ blocked($1) } }

    subscript(counter: Counter) -> UInt64 { counters[counter.rawValue] }

    /// The reply to a statement arrives now.
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
    /// The fast path, with keys or without.
    case count
    case slowPath
    /// The read path, and whatever else changes nothing.
    case read

    /// The documented value of the metric's label `statement`.
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
    /// Requests per batch.
    public var batchSizes = BucketCounts()
    /// In microseconds.
    public var queueWaits = BucketCounts()
    /// In microseconds, from sending to the complete result.
    public var statements: [(kind: StatementKind, times: BucketCounts)] = []
    public var messagesCounted: UInt64 = 0
    public var requestsBlocked: [(reason: DenialReason, requests: UInt64)] = []
    public var outcomesUnknown: UInt64 = 0
    /// Statements that waited in vain for a lock of another session.
    public var lockTimeouts: UInt64 = 0
    /// Waiting requests now, by lane.
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
