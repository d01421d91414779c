import Engine
import Logging
import Postgres
import TestSupport
import Testing
import Usage

@testable import HTTPServer

@Suite("The store, asked by requests of the HTTP side")
struct StoreGatewayTests {
    @Test("answers each with its own outcome, however many ask at once")
    func outcomes() async throws {
        let conninfo = try await TestServer.migratedDatabase()
        let store = BatchingEngine(
            EngineConfiguration(databaseURL: conninfo, requestTimeout: waitLimit, connectTimeout: waitLimit),
            logger: .silent
        )
        let gateway = StoreGateway(store)
        async let running: Void = store.run()
        let used = await withTaskGroup(of: Int?.self) { group in
            for _ in 0..<20 {
                group.addTask {
                    guard case .answer(let answer) = await gateway.ask(.consume(1), of: ada) else { return nil }
                    return answer.snapshot.used
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(Set(used) == Set(1...20))
        guard case .report(let report) = await gateway.read(.report(.open)) else {
            Issue.record("no report")
            return
        }
        // The trial is an open period.
        #expect((report.users, report.messages) == (1, 20))
        store.close()
        await running
        guard case .failure = await gateway.ask(.usage, of: ada) else {
            Issue.record("answered after the end")
            return
        }
    }
}
