import Engine
import InMemoryTracing
import Logging
import Postgres
import TestSupport
import Testing
import Tracing
import Usage

@testable import HTTPServer

@Suite("The engine client")
struct EngineClientTests {
    @Test("concurrent requests each get their own outcome")
    func outcomes() async throws {
        let conninfo = try await TestServer.migratedDatabase()
        let engine = BatchingEngine(
            EngineConfiguration(
                database: DatabaseTopology(conninfo),
                requestTimeout: waitLimit,
                connectTimeout: waitLimit
            ),
            logger: .silent
        )
        let client = EngineClient(engine)
        async let running: Void = engine.run()
        let used = await withTaskGroup(of: Int?.self) { group in
            for _ in 0..<20 {
                group.addTask {
                    guard case .answer(let answer) = await client.perform(.consume(1), for: ada) else { return nil }
                    return answer.snapshot.used
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(Set(used) == Set(1...20))
        guard case .report(let report) = await client.report(.report(.open)) else {
            Issue.record("no report")
            return
        }
        // The trial is an open period.
        #expect((report.users, report.messages) == (1, 20))
        engine.close()
        await running
        guard case .failure = await client.perform(.usage, for: ada) else {
            Issue.record("answered after the engine has closed")
            return
        }
    }

    @Test("a request belongs to the trace of its task, and one that is refused leaves nothing behind")
    func traces() async throws {
        let conninfo = try await TestServer.migratedDatabase()
        let tracer = InMemoryTracer()
        let traces = RequestTraces(tracer, slowTime: nil)
        let configuration = EngineConfiguration(
            database: DatabaseTopology(conninfo),
            requestTimeout: waitLimit,
            connectTimeout: waitLimit
        )
        let engine = BatchingEngine(configuration, traces: traces, logger: .silent)
        let client = EngineClient(engine)
        async let running: Void = engine.run()
        let caller = tracer.startSpan("caller", context: .topLevel)
        _ = await client.perform(.consume(1), for: ada)
        _ = await InstrumentationContext.$current.withValue(caller.context) {
            await client.perform(.consume(1), for: ada)
        }
        engine.close()
        await running
        let batches = tracer.finishedSpans.filter { $0.operationName == "batch" }
        #expect(batches.map(\.parentSpanID) == [caller.spanID])
        let statements = tracer.finishedSpans.filter { $0.parentSpanID == batches.first?.spanID }
        #expect(statements.map(\.operationName) == ["count"])
        _ = await InstrumentationContext.$current.withValue(caller.context) {
            await client.perform(.consume(1), for: ada)
        }
        #expect(traces.isEmpty)
    }
}
