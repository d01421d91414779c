import Logging
import ServiceLifecycle
import TestSupport
import Testing

@testable import HeadroomClient

@Suite("Ending a client")
struct LifetimeTests {
    @Test("A released client closes its connections without a shutdown")
    func dropped() async throws {
        let service = try await ScriptedService.start { line, _ in ScriptedService.allowed(line) }
        do {
            var configuration = HeadroomClient.Configuration.withTestTimeouts(service.endpoint)
            configuration.connectionsPerEndpoint = 3
            let client = HeadroomClient(configuration)
            try await waitUntil("there are three connections, as configured") {
                _ = try await client.consume(.random)
                return service.openConnections == 3
            }
            for _ in 0..<10 { _ = try await client.consume(.random) }
            #expect(service.connections == 3)
        }
        try await waitUntil("there is no connection") { service.openConnections == 0 }
        await service.close()
    }

    @Test("Changes arrive after the client itself was released", .timeLimit(.minutes(10)))
    func followed() async throws {
        let service = try await ServiceProcess.start()
        let other = try await ServiceProcess.start(databaseURL: service.conninfo)
        let user = UserID.random
        try await HeadroomClient.with(other) { direct in
            _ = try await direct.consume(user)
            weak var client: HeadroomClient?
            var iterator = {
                let held = HeadroomClient(.init(endpoints: [service.endpoint]))
                client = held
                return held.changes(of: user).makeAsyncIterator()
            }()
            #expect(await iterator.next()?.used == 1)
            #expect(client == nil)
            // Longer than the liveness check holds references.
            for used in 2...4 {
                _ = try await direct.consume(user)
                var last = 0
                while last < used, let status = await iterator.next() { last = status.used }
                #expect(last == used)
            }
        }
    }

    @Test("Every shutdown waits for requests under way, the second one too")
    func twice() async throws {
        let admission = Admission(maximum: 1)
        try admission.enter()
        let early = Flag()
        let closing = (0..<2).map { _ in
            Task {
                await admission.close(within: .seconds(600))
                if admission.underWay > 0 { early.set() }
            }
        }
        try await waitUntil("both wait, or one does not") { admission.waiterCount == 2 || early.isSet }
        admission.leave()
        for closing in closing { await closing.value }
        #expect(!early.isSet)
    }

    @Test("A shutdown without a timeout does not wait", .timeLimit(.minutes(10)))
    func withoutPatience() async {
        for _ in 0..<500 {
            let admission = Admission(maximum: 1)
            #expect(throws: Never.self) { try admission.enter() }
            await admission.close(within: .zero)
            #expect(admission.isClosed)
        }
    }

    @Test("Running it twice, or cancelling its task, shuts it down")
    func runs() async throws {
        let service = try await ScriptedService.start { line, _ in ScriptedService.allowed(line) }
        let silent = Logger.silent
        let twice = HeadroomClient(.withTestTimeouts(service.endpoint), logger: silent)
        let group = ServiceGroup(services: [twice, twice], logger: silent)
        let running = Task { try await group.run() }
        _ = try await twice.consume(.random)
        await group.triggerGracefulShutdown()
        try await running.value
        let cancelled = HeadroomClient(.withTestTimeouts(service.endpoint), logger: silent)
        let run = Task { try await cancelled.run() }
        _ = try await cancelled.consume(.random)
        run.cancel()
        try await run.value
        for client in [twice, cancelled] {
            let error = await #expect(throws: HeadroomError.self) { try await client.consume(.random) }
            #expect(error?.code == .shutDown)
        }
        try await waitUntil("the connections are closed") { service.openConnections == 0 }
        await service.close()
    }

    @Test("A shutdown without a reachable service ends the changes without an error")
    func quiet() async throws {
        let log = RecordingLog()
        let client = HeadroomClient(.withTestTimeouts(try await ScriptedService.endpointOfNobody()), logger: log.logger)
        let following = Task { for await _ in client.changes(of: .random) {} }
        try await waitUntil("it cannot connect") { log.messages(.info).contains("could not connect") }
        await client.shutDown()
        await following.value
        await client.shutDown()
        #expect(log.messages(.error).isEmpty)
    }
}
