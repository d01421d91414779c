import HeadroomClient
import TestSupport
import Testing

@Suite("Several endpoints", .serialized)
struct SeveralEndpointsTests {
    /// Answers like an instance, which drains while the flag is set.
    private func service(drainsWhile isDraining: Flag) async throws -> ScriptedService {
        try await ScriptedService.start { line, _ in
            if isDraining.isSet { return .answerAndClose("-DRAINING shutting down\r\n") }
            return line.hasPrefix("PING") ? .answer("+PONG\r\n") : ScriptedService.allowed(line)
        }
    }

    private func messages(_ service: ScriptedService) -> Int { service.requests.count { $0.hasPrefix("CONSUME") } }

    @Test("An endpoint that drains gets no message after its -DRAINING, and is used again once it answers")
    func drainsAndReturns() async throws {
        let isDraining = Flag()
        let (near, far) = (try await service(drainsWhile: isDraining), try await service(drainsWhile: Flag()))
        var configuration = HeadroomClient.Configuration.withTestTimeouts([near.endpoint, far.endpoint])
        configuration.backoff = .milliseconds(1)...(.milliseconds(10))
        let client = HeadroomClient(configuration)
        _ = try await client.consume(.random)
        #expect(messages(near) == 1 && messages(far) == 0)
        isDraining.set()
        var sent = 0
        // Until it has been asked several times whether it is back.
        try await waitUntil("the client asks") {
            _ = try await client.consume(.random)
            sent += 1
            return near.requests.count { $0.hasPrefix("PING") } >= 3
        }
        #expect(messages(near) == 2 && messages(far) == sent)
        isDraining.clear()
        try await waitUntil("the client returns") {
            _ = try await client.consume(.random)
            return messages(near) > 2
        }
        try await waitUntil("the other connection is closed") { far.openConnections == 0 }
        await client.shutDown()
        await near.close()
        await far.close()
    }

    @Test("While each of two services restarts in turn, no request fails, and each message counts once")
    func rollingRestart() async throws {
        let first = try await ServiceProcess.start()
        let second = try await ServiceProcess.start(databaseURL: first.conninfo)
        try await HeadroomClient.with(first, second) { client in
            let user = UserID.random
            _ = try await client.setPlan(PlanChange(user: user, plan: "pro"))
            let count = try await client.consume(for: user) {
                for service in [first, second, first] {
                    try await service.terminate()
                    try await service.restart()
                }
            }
            #expect(try await client.usage(of: user).used == count)
        }
    }

    @Test("With spread, clients do not all prefer the same endpoint")
    func spread() async throws {
        let services = [try await service(drainsWhile: Flag()), try await service(drainsWhile: Flag())]
        for _ in 0..<40 {
            var configuration = HeadroomClient.Configuration.withTestTimeouts(services.map(\.endpoint))
            configuration.spread = true
            let client = HeadroomClient(configuration)
            _ = try await client.consume(.random)
            await client.shutDown()
        }
        let counts = services.map(messages)
        #expect(counts.reduce(0, +) == 40)
        // With one chance in 2^39, all 40 prefer the same.
        #expect(counts.allSatisfy { $0 > 0 })
        for service in services { await service.close() }
    }
}
