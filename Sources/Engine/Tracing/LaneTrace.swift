import Tracing
import Usage

/// Notes when a lane takes, executes and answers requests, and makes spans of that (`RequestTraces`). Only the lane's
/// thread uses it.
///
/// A request's span has two children: `queue`, until the lane took the request, and `batch`, until its answer was
/// ready. The statements are children of the batch's span in one trace; in the others, a link leads there.
final class LaneTrace {
    /// A request of the present batch whose spans may be wanted.
    private struct Followed {
        let verb: String
        let arrivedAt: ContinuousClock.Instant
        /// The trace of the request; nil if the spans are only wanted if the request turns out to be slow.
        let context: InstrumentationContext?
        var answeredAt: ContinuousClock.Instant?
        var outcome: Outcome?
    }

    private struct Statement {
        let kind: StatementKind
        let sentAt: ContinuousClock.Instant
        let endedAt: ContinuousClock.Instant
    }

    private let traces: RequestTraces
    private let lane: Int
    private let requestTimeout: Duration
    private var tracer: any Tracer { traces.tracer }

    private var takenAt = ContinuousClock.now
    private var size = 0
    private var followed: [ReturnAddress: Followed] = [:]
    private var belongsToTrace = false
    private var statements: [Statement] = []

    init(_ traces: RequestTraces, lane: Int, requestTimeout: Duration) {
        self.traces = traces
        self.lane = lane
        self.requestTimeout = requestTimeout
    }

    // MARK: What happens

    func begin(_ requests: [BatchedRequest]) {
        let contexts = begin(requests.lazy.map(\.returnAddress))
        if belongsToTrace {
            for request in requests {
                guard let context = contexts[request.returnAddress] else { continue }
                follow(request.returnAddress, request.operation.verb, request.deadline, context)
            }
        }
        if traces.slowTime != nil, let first = requests.min(by: { $0.deadline < $1.deadline }),
            followed[first.returnAddress] == nil
        {
            follow(first.returnAddress, first.operation.verb, first.deadline, nil)
        }
    }

    func begin(_ request: UnbatchedRequest) {
        let address = request.returnAddress
        let contexts = begin(CollectionOfOne(address))
        follow(address, request.operation.verb, request.deadline, contexts[address])
    }

    /// - Returns: the traces to which some of the requests belong.
    private func begin(_ addresses: some Collection<ReturnAddress>) -> [ReturnAddress: InstrumentationContext] {
        takenAt = .now
        size = addresses.count
        statements.removeAll(keepingCapacity: true)
        followed.removeAll(keepingCapacity: true)
        let contexts = traces.contexts(of: addresses)
        belongsToTrace = !contexts.isEmpty
        return contexts
    }

    private func follow(
        _ address: ReturnAddress,
        _ verb: String,
        _ deadline: Deadline,
        _ context: InstrumentationContext?
    ) {
        // All requests have the same time limit, so the deadline shows when the request arrived.
        followed[address] = Followed(verb: verb, arrivedAt: deadline.instant - requestTimeout, context: context)
    }

    func executed(_ kind: StatementKind, sentAt: ContinuousClock.Instant) {
        statements.append(Statement(kind: kind, sentAt: sentAt, endedAt: .now))
    }

    func answered(_ completions: [Completion]) {
        let now = ContinuousClock.now
        // Without a trace, one request is followed, and there is nothing to note before it can be slow.
        guard belongsToTrace || followed.values.contains(where: { isSlow($0, at: now) }) else { return }
        for completion in completions {
            guard followed[completion.returnAddress] != nil else { continue }
            followed[completion.returnAddress]?.answeredAt = now
            followed[completion.returnAddress]?.outcome = completion.outcome
        }
    }

    private func isSlow(_ request: Followed, at answeredAt: ContinuousClock.Instant) -> Bool {
        guard let slowTime = traces.slowTime else { return false }
        return answeredAt - request.arrivedAt >= slowTime
    }

    // MARK: Spans

    /// Makes the spans, after the requests of the batch are answered.
    func end() {
        // The request that was answered last is first: every statement was executed before its answer.
        let answered = followed.values.sorted { ($0.answeredAt ?? takenAt) > ($1.answeredAt ?? takenAt) }
        var first: InstrumentationContext?
        for request in answered {
            guard let answeredAt = request.answeredAt else { continue }
            if let context = request.context {
                record(request, until: answeredAt, in: context, &first)
            } else if isSlow(request, at: answeredAt) {
                let root = start(request.verb, .topLevel, .server, request.arrivedAt)
                describe(root, request.outcome)
                record(request, until: answeredAt, in: root.context, &first)
                root.end(at: wallClock(answeredAt))
            }
        }
    }

    /// - Parameter first: the batch's span that has the statements; nil until there is one.
    private func record(
        _ request: Followed,
        until answeredAt: ContinuousClock.Instant,
        in context: InstrumentationContext,
        _ first: inout InstrumentationContext?
    ) {
        start("queue", context, .internal, request.arrivedAt).end(at: wallClock(takenAt))
        let batch = start("batch", context, .internal, takenAt)
        batch.updateAttributes { attributes in
            attributes["headroom.lane"] = lane
            attributes["headroom.batch.requests"] = size
        }
        describe(batch, request.outcome)
        if let first {
            batch.addLink(SpanLink(context: first, attributes: [:]))
        } else {
            first = batch.context
            for statement in statements where statement.sentAt < answeredAt {
                let span = start(statement.kind.label, batch.context, .client, statement.sentAt)
                span.updateAttributes { $0["db.system.name"] = "postgresql" }
                span.end(at: wallClock(statement.endedAt))
            }
        }
        batch.end(at: wallClock(answeredAt))
    }

    /// Makes the spans of requests that have failed after the lane had taken them, and they waited for a lock.
    func failed(_ requests: [Request], _ completions: [Completion]) {
        let batched = requests.compactMap(BatchedRequest.init)
        if !batched.isEmpty {
            begin(batched)
            answered(completions)
            end()
        }
        for request in requests.compactMap(UnbatchedRequest.init) {
            begin(request)
            answered(completions)
            end()
        }
    }

    /// Makes a span of requests that have waited for the lane until their deadline.
    func expired(_ requests: Int, _ error: EngineError) {
        guard let slowTime = traces.slowTime, requestTimeout >= slowTime else { return }
        let now = ContinuousClock.now
        let span = start("expired", .topLevel, .server, now - requestTimeout)
        span.updateAttributes { attributes in
            attributes["headroom.lane"] = lane
            attributes["headroom.expired.requests"] = requests
        }
        describe(span, .failure(error))
        span.end(at: wallClock(now))
    }

    private func describe(_ span: any Span, _ outcome: Outcome?) {
        switch outcome {
        case .failure(let error):
            span.updateAttributes { $0["error.type"] = traces.errorName(error) }
            span.setStatus(SpanStatus(code: .error))
        case .answer(let answer):
            guard case .blocked(let reason) = answer.status else { return }
            span.updateAttributes { $0["headroom.blocked.reason"] = reason.rawValue }
        case .allowances, .periodUsages, .done, .report, .periods, .subscribed, nil: break
        }
    }

    private func start(
        _ name: String,
        _ context: InstrumentationContext,
        _ kind: SpanKind,
        _ instant: ContinuousClock.Instant
    ) -> any Span {
        tracer.startSpan(name, context: context, ofKind: kind, at: wallClock(instant))
    }

    private func wallClock(_ instant: ContinuousClock.Instant) -> DefaultTracerClock.Timestamp {
        let age = (ContinuousClock.now - instant).components
        let nanoseconds = age.seconds * 1_000_000_000 + age.attoseconds / 1_000_000_000
        let now = DefaultTracerClock.now.nanosecondsSinceEpoch
        return DefaultTracerClock.Timestamp(nanosecondsSinceEpoch: now &- UInt64(bitPattern: nanoseconds))
    }
}

extension BatchedOperation {
    /// The name of the verb in the line protocol.
    fileprivate var verb: String {
        switch self {
        case .consume: "CONSUME"
        case .reserve: "RESERVE"
        case .commit: "COMMIT"
        case .release: "RELEASE"
        case .check: "CHECK"
        case .usage: "USAGE"
        }
    }
}

extension UnbatchedOperation {
    /// The name of the verb in the line protocol.
    fileprivate var verb: String {
        switch self {
        case .usageInPeriod: "USAGE"
        case .allowances: "ALLOWANCES"
        case .history: "HISTORY"
        case .change(.setPlan, _): "SETPLAN"
        case .change(.grant, _): "GRANT"
        case .change(.resetUsage, _), .change(.closeWindow, _): "RESETUSAGE"
        case .change(.forget, _): "FORGET"
        }
    }
}
