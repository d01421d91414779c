import InMemoryTracing
import TestSupport
import Testing
import Tracing
import Usage

@testable import Engine

@Suite("The spans of a lane")
struct LaneTraceTests {
    private let tracer = InMemoryTracer()
    private let timeout = Duration.seconds(2)

    private func traces(slowTime: Duration? = .seconds(1)) -> RequestTraces {
        RequestTraces(tracer, slowTime: slowTime) { "error \($0.code)" }
    }

    private func lane(_ traces: RequestTraces) -> LaneTrace { LaneTrace(traces, lane: 3, requestTimeout: timeout) }

    /// - Parameter age: how long ago the request arrived.
    private func request(_ slot: UInt64, _ operation: EngineOperation = .consume(1), age: Duration = .zero) -> Request {
        .fixture(user(slot), operation, slot: slot, deadline: .now - age + timeout)
    }

    private func batch(_ requests: Request...) -> [BatchedRequest] { requests.compactMap(BatchedRequest.init) }

    private func answer(_ request: Request, _ outcome: Outcome = .done) -> Completion {
        Completion(returnAddress: request.returnAddress, outcome: outcome)
    }

    /// Makes the span of a caller, and registers a request as its.
    private func callerSpan(_ request: Request, _ traces: RequestTraces) -> InMemorySpan {
        let span = tracer.startSpan("caller", context: .topLevel)
        traces.begin(request.returnAddress, in: span.context)
        return span
    }

    private func finished(_ name: String) -> [FinishedInMemorySpan] {
        tracer.finishedSpans.filter { $0.operationName == name }
    }

    @Test("show the queue, the batch and its statements in the trace of the caller")
    func traced() throws {
        let (traces, request) = (traces(), request(1))
        let (lane, caller) = (lane(traces), callerSpan(request, traces))
        lane.begin(batch(self.request(2), request))
        lane.executed(.count, sentAt: .now)
        lane.executed(.slowPath, sentAt: .now)
        lane.answered([answer(request)])
        lane.end()
        #expect(tracer.finishedSpans.map(\.operationName) == ["queue", "count", "perform", "batch"])
        let batch = try #require(finished("batch").first)
        #expect(batch.parentSpanID == caller.spanID && batch.traceID == caller.traceID && batch.kind == .internal)
        #expect(finished("queue").first?.parentSpanID == caller.spanID)
        #expect(batch.attributes["headroom.lane"]?.toSpanAttribute() == .int64(3))
        #expect(batch.attributes["headroom.batch.requests"]?.toSpanAttribute() == .int64(2))
        for statement in finished("count") + finished("perform") {
            #expect(statement.parentSpanID == batch.spanID && statement.kind == .client)
            #expect(statement.attributes["db.system.name"]?.toSpanAttribute() == .string("postgresql"))
        }
    }

    @Test("of two callers in one batch: the second has a link to the first, with all statements")
    func twoCallers() throws {
        let (traces, early, late) = (traces(), request(1), request(2))
        let lane = lane(traces)
        let callers = [callerSpan(early, traces), callerSpan(late, traces)]
        lane.begin(batch(early, late))
        lane.executed(.count, sentAt: .now)
        lane.answered([answer(early)])
        lane.executed(.slowPath, sentAt: .now)
        lane.answered([answer(late)])
        lane.end()
        let batches = finished("batch")
        #expect(batches.map(\.parentSpanID) == callers.reversed().map(\.spanID))
        let (whole, part) = (try #require(batches.first), try #require(batches.last))
        #expect((finished("count") + finished("perform")).map(\.parentSpanID) == [whole.spanID, whole.spanID])
        #expect(part.links.map { $0.context.inMemorySpanContext?.spanID } == [whole.spanID])
        #expect(part.endInstant.nanosecondsSinceEpoch <= whole.endInstant.nanosecondsSinceEpoch)
    }

    @Test("of a slow request that nobody traces begin with a span of its own, from its arrival to its answer")
    func slow() throws {
        let old = request(1, .reserve(1, key: "k", ttlSeconds: 60), age: .milliseconds(1_500))
        let lane = lane(traces())
        lane.begin(batch(request(2), old))
        lane.executed(.count, sentAt: .now)
        lane.answered([answer(request(2)), answer(old, .failure(.late))])
        lane.end()
        #expect(tracer.finishedSpans.map(\.operationName) == ["queue", "count", "batch", "RESERVE"])
        let root = try #require(finished("RESERVE").first)
        #expect(root.parentSpanID == nil && root.kind == .server)
        #expect((finished("queue") + finished("batch")).map(\.parentSpanID) == [root.spanID, root.spanID])
        let duration = root.endInstant.nanosecondsSinceEpoch - root.startInstant.nanosecondsSinceEpoch
        #expect((1_500_000_000..<60_000_000_000).contains(duration))
        for span in finished("RESERVE") + finished("batch") {
            #expect(span.attributes["error.type"]?.toSpanAttribute() == .string("error unavailable"))
            #expect(span.status?.code == .error)
        }
    }

    @Test("are none of requests that are not slow and that nobody traces, and none of slow ones if that is off")
    func nothing() {
        for (traces, age) in [(traces(slowTime: .seconds(60)), Duration.zero), (traces(slowTime: nil), .seconds(90))] {
            let (lane, request) = (lane(traces), request(1, age: age))
            lane.begin(batch(request))
            lane.executed(.count, sentAt: .now)
            lane.answered([answer(request)])
            lane.end()
            lane.expired(1, .late)
        }
        #expect(tracer.finishedSpans.isEmpty && tracer.activeSpans.isEmpty)
    }

    @Test("of an unbatched request", arguments: [true, false])
    func unbatched(isTraced: Bool) throws {
        let request = request(1, .resetUsage(nil), age: .milliseconds(1_200))
        let traces = traces()
        let lane = lane(traces)
        let caller = isTraced ? callerSpan(request, traces) : nil
        lane.begin(try #require(UnbatchedRequest(request)))
        lane.answered([answer(request)])
        lane.end()
        let batch = try #require(finished("batch").first)
        let parent = try #require(caller?.spanID ?? finished("RESETUSAGE").first?.spanID)
        #expect(batch.parentSpanID == parent && finished("queue").map(\.parentSpanID) == [parent])
        #expect(finished("RESETUSAGE").count == (isTraced ? 0 : 1))
    }

    @Test("are none of a request whose caller has got its answer")
    func ended() {
        let (traces, request) = (traces(), request(1))
        _ = callerSpan(request, traces)
        traces.end(request.returnAddress)
        let lane = lane(traces)
        lane.begin(batch(request))
        lane.answered([answer(request)])
        lane.end()
        #expect(tracer.finishedSpans.isEmpty)
    }

    @Test("of requests that no batch took are one, as long as a request may wait")
    func expired() throws {
        lane(traces()).expired(7, .unreachable)
        let span = try #require(finished("expired").first)
        #expect(span.attributes["headroom.expired.requests"]?.toSpanAttribute() == .int64(7))
        #expect(span.attributes["error.type"]?.toSpanAttribute() == .string("error unreachable"))
        #expect(span.endInstant.nanosecondsSinceEpoch - span.startInstant.nanosecondsSinceEpoch >= 1_900_000_000)
        lane(traces(slowTime: .seconds(3))).expired(7, .unreachable)
        #expect(finished("expired").count == 1)
    }

    @Test("name the reason of a refusal")
    func refusal() throws {
        var snapshot = UsageSnapshot.monthly(used: 800)
        let request = request(1, age: .milliseconds(1_100))
        let lane = lane(traces())
        lane.begin(batch(request))
        lane.answered([answer(request, .answer(snapshot.consume(1, of: user(1))))])
        lane.end()
        let reason = try #require(finished("CONSUME").first?.attributes["headroom.blocked.reason"])
        #expect(reason.toSpanAttribute() == .string(DenialReason.limitReached.rawValue))
    }
}
