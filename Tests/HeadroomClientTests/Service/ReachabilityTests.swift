import Foundation
import HeadroomClient
import Logging
import ServiceLifecycle
import TestSupport
import Testing

@Suite("Slow, stopped and stopping services", .serialized)
struct ReachabilityTests {
    @Test("Without a reachable service a request fails with an error that says so")
    func deny() async throws {
        let endpoint = try await ScriptedService.endpointOfNobody()
        var configuration = HeadroomClient.Configuration(endpoints: [endpoint])
        configuration.deadline = .seconds(2)
        let client = HeadroomClient(configuration)
        let error = await #expect(throws: HeadroomError.self) { try await client.consume(.random) }
        #expect(error?.code == .unreachable && error?.isTransient == true && error?.underlying != nil)
        let described = (try #require(error) as any Error).localizedDescription
        #expect(described.hasSuffix("that its address is right (\(endpoint): nothing listens there)"), "\(described)")
        await client.shutDown()
    }

    @Test("The policy allow lets the message through uncounted, and logs it")
    func allow() async throws {
        var configuration = HeadroomClient.Configuration(endpoints: [try await ScriptedService.endpointOfNobody()])
        configuration.deadline = .milliseconds(300)
        configuration.whenUnreachable = .allow
        let log = RecordingLog()
        let client = HeadroomClient(configuration, logger: log.logger)
        let decision = try await client.consume(.random)
        #expect(decision.isAllowed && decision.isDegraded && decision.status.display == .hidden)
        let outcome = try await client.withHold(.random) { $0.isDegraded }
        guard case .completed(true, let decision) = outcome, decision.isDegraded else {
            Issue.record("the outcome is \(outcome)")
            return
        }
        #expect(log.messages(.warning) == Array(repeating: "a message was let through uncounted", count: 2))
        await #expect(throws: HeadroomError.self) { try await client.usage(of: .random) }
        await client.shutDown()
    }

    @Test("A message over the limit is blocked under either policy")
    func allowIsNoBypass() async throws {
        let service = try await ServiceProcess.start()
        let configure: (inout HeadroomClient.Configuration) -> Void = { $0.whenUnreachable = .allow }
        try await HeadroomClient.with(service, configure: configure) { client in
            let user = UserID.random
            _ = try await client.consume(user, messages: 100)
            #expect(try await !client.consume(user).isAllowed)
        }
    }

    @Test("When an endpoint dies, the other one answers, and each message counts once")
    func failover() async throws {
        let first = try await ServiceProcess.start()
        let second = try await ServiceProcess.start(databaseURL: first.conninfo)
        try await HeadroomClient.with(first, second) { client in
            let user = UserID.random
            for _ in 0..<10 { _ = try await client.consume(user) }
            try await first.crash()
            for _ in 0..<10 { _ = try await client.consume(user) }
            #expect(try await client.usage(of: user).used == 20)
        }
    }

    @Test("Requests to an endpoint that hangs go to another one after the attempt timeout")
    func hanging() async throws {
        let first = try await ServiceProcess.start()
        let second = try await ServiceProcess.start(databaseURL: first.conninfo)
        let configure: (inout HeadroomClient.Configuration) -> Void = { $0.attemptTimeout = .milliseconds(500) }
        try await HeadroomClient.with(first, second, configure: configure) { client in
            let user = UserID.random
            _ = try await client.consume(user)
            first.pause(true)
            let decision = try await client.consume(user)
            #expect(decision.isAllowed && decision.status.used == 2)
            first.pause(false)
            #expect(try await client.usage(of: user).used == 2)
        }
    }

    @Test("A draining service causes no error")
    func draining() async throws {
        let first = try await ServiceProcess.start()
        let second = try await ServiceProcess.start(databaseURL: first.conninfo)
        try await HeadroomClient.with(first, second) { client in
            let user = UserID.random
            _ = try await client.setPlan(PlanChange(user: user, plan: "pro"))
            let count = try await client.consume(for: user) { try await first.terminate() }
            #expect(try await client.usage(of: user).used == count)
        }
    }

    @Test("A cancelled task ends at once, and other requests get their own answers")
    func cancellation() async throws {
        let service = try await ServiceProcess.start()
        try await HeadroomClient.with(service) { client in
            let user = UserID.random
            _ = try await client.usage(of: user)
            service.pause(true)
            let waiting = Task { try await client.consume(user) }
            let cancelled = Task { try await client.check(user) }
            cancelled.cancel()
            let error = await #expect(throws: HeadroomError.self) { try await cancelled.value }
            #expect(error?.code == .cancelled)
            service.pause(false)
            #expect(try await waiting.value.status.used == 1)
        }
    }

    @Test("During a shutdown accepted requests are answered, and no others are accepted")
    func gracefulShutdown() async throws {
        let service = try await ServiceProcess.start()
        let client = HeadroomClient(.withTestTimeouts(service.endpoint))
        let user = UserID.random
        _ = try await client.consume(user)
        let group = ServiceGroup(services: [client], logger: .silent)
        let running = Task { try await group.run() }
        let (started, start) = AsyncStream.makeStream(of: Void.self)
        let (finish, finished) = AsyncStream.makeStream(of: Void.self)
        let holding = Task {
            try await client.withHold(user) { _ in
                start.finish()
                for await _ in finish {}
                return 1
            }
        }
        for await _ in started {}
        await group.triggerGracefulShutdown()
        try await waitUntil("nothing more is taken") {
            do {
                _ = try await client.check(user)
                return false
            } catch let error as HeadroomError {
                return error.code == .shutDown
            }
        }
        finished.finish()
        guard case .completed(1, let decision) = try await holding.value else {
            Issue.record("what was taken before was not done")
            return
        }
        #expect(decision.status.used == 2)
        try await running.value
    }

    @Test("A request over the maximum fails at once and counts nothing")
    func tooMany() async throws {
        let service = try await ServiceProcess.start()
        let configure: (inout HeadroomClient.Configuration) -> Void = { $0.requestsMaximum = 2 }
        try await HeadroomClient.with(service, configure: configure) { client in
            let user = UserID.random
            _ = try await client.usage(of: user)
            service.pause(true)
            let refused = Flag()
            let allowed = try await withThrowingTaskGroup(of: Int.self) { group in
                for _ in 0..<3 {
                    group.addTask {
                        do throws(HeadroomError) {
                            return try await client.consume(user).status.used
                        } catch let error where error.code == .tooManyRequests {
                            refused.set()
                            return 0
                        }
                    }
                }
                try await waitUntil("one of three is refused") { refused.isSet }
                service.pause(false)
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(allowed.sorted() == [0, 1, 2])
        }
    }
}
