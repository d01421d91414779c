import HeadroomClient
import Synchronization
import TestSupport
import Testing

@Suite("Holding messages while a body runs", .serialized)
struct HoldTests {
    private struct ModelFailed: Error {}

    private final class RequestCounter: Sendable {
        private let last = Atomic(0)

        func next() -> Int { last.add(1, ordering: .relaxed).newValue }
    }

    @Test("Messages count as used while the body runs, and are counted afterwards")
    func completed() async throws {
        let service = try await ServiceProcess.start()
        try await HeadroomClient.with(service) { client in
            let user = UserID.random
            let outcome = try await client.withHold(user, messages: 2) { hold in
                #expect(hold.status.held == 2 && hold.status.remaining == 98)
                return "an answer"
            }
            guard case .completed("an answer", let decision) = outcome else {
                Issue.record("the outcome is \(outcome)")
                return
            }
            #expect(decision.isAllowed && decision.status.used == 2 && decision.status.held == 0)
        }
    }

    @Test("Of the held messages those are counted that the result has cost, at most all", arguments: [0, 3, 9, 10, -1])
    func actualMessages(cost: Int) async throws {
        let service = try await ServiceProcess.start()
        try await HeadroomClient.with(service) { client in
            let user = UserID.random
            let outcome = try await client.withHold(user, messages: 9, counting: { $0 }) { _ in cost }
            guard case .completed(cost, let decision) = outcome else {
                Issue.record("the outcome is \(outcome)")
                return
            }
            #expect(decision.status.used == min(max(cost, 0), 9) && decision.status.held == 0)
        }
    }

    @Test("An error of the body is rethrown, and the messages are given back")
    func thrown() async throws {
        let service = try await ServiceProcess.start()
        try await HeadroomClient.with(service) { client in
            let user = UserID.random
            await #expect(throws: ModelFailed.self) { try await client.withHold(user) { _ in throw ModelFailed() } }
            let status = try await client.usage(of: user)
            #expect(status.used == 0 && status.held == 0)
        }
    }

    @Test("A cancelled task gives the messages back, whether its body throws or returns")
    func cancelled() async throws {
        let service = try await ServiceProcess.start()
        try await HeadroomClient.with(service) { client in
            for isQuiet in [false, true] {
                let user = UserID.random
                let (started, start) = AsyncStream.makeStream(of: Void.self)
                let task = Task {
                    try await client.withHold(user) { _ in
                        start.finish()
                        do {
                            try await Task.sleep(for: .seconds(600))
                        } catch {
                            // A loop over a stream ends without an error when its task is cancelled.
                            guard isQuiet else { throw error }
                        }
                        return 1
                    }
                }
                for await _ in started {}
                task.cancel()
                await #expect(throws: CancellationError.self) { _ = try await task.value }
                let status = try await client.usage(of: user)
                #expect(status.used == 0 && status.held == 0)
            }
        }
    }

    @Test("At the limit the body does not run, and the outcome has the reason")
    func blocked() async throws {
        let service = try await ServiceProcess.start()
        try await HeadroomClient.with(service) { client in
            let user = UserID.random
            _ = try await client.consume(user, messages: 100)
            let outcome = try await client.withHold(user) { _ in Issue.record("the body has run") }
            guard case .blocked(let status, .trialLimitReached) = outcome else {
                Issue.record("the outcome is \(outcome)")
                return
            }
            #expect(outcome.result == nil && status.display == .blocked && status.banner != nil)
        }
    }

    @Test("A body that outlives its hold is not interrupted, and counts nothing")
    func outlived() async throws {
        let service = try await ServiceProcess.start()
        try await HeadroomClient.with(service) { client in
            let user = UserID.random
            let outcome = try await client.withHold(user, ttl: .seconds(1)) { _ in
                try await waitUntil("the hold is over") { try await client.usage(of: user).held == 0 }
                return "late"
            }
            guard case .expired("late") = outcome else {
                Issue.record("the outcome is \(outcome)")
                return
            }
            let status = try await client.usage(of: user)
            #expect(status.used == 0 && status.held == 0)
        }
    }

    @Test("Without an answer to the commit, the result is kept, and the client retries until it is counted")
    func uncommitted() async throws {
        let service = try await ServiceProcess.start()
        let configure: (inout HeadroomClient.Configuration) -> Void = { $0.deadline = .milliseconds(700) }
        try await HeadroomClient.with(service, configure: configure) { client in
            let user = UserID.random
            var outcome: HoldOutcome<String>?
            // On a slow machine the hold may time out, and then the body does not run.
            try await waitUntil("the body has run") {
                outcome = try? await client.withHold(user, ttl: .seconds(3_600)) { _ in
                    try await service.crash()
                    return "an answer"
                }
                return outcome != nil
            }
            guard case .uncommitted("an answer", let error) = outcome else {
                Issue.record("the outcome is \(String(describing: outcome))")
                return
            }
            #expect(error.isTransient)
            try await service.restart()
            try await waitUntil("it is counted") {
                let status = try? await client.usage(of: user, deadline: waitLimit)
                return status?.used == 1 && status?.held == 0
            }
        }
    }

    @Test("Without an answer to the release, the client retries until the messages are given back")
    func releasedLater() async throws {
        let service = try await ServiceProcess.start()
        let configure: (inout HeadroomClient.Configuration) -> Void = { $0.deadline = .milliseconds(700) }
        try await HeadroomClient.with(service, configure: configure) { client in
            let user = UserID.random
            try await waitUntil("the body has run, and its error comes out") {
                do {
                    _ = try await client.withHold(user, ttl: .seconds(3_600)) { _ in
                        try await service.crash()
                        throw ModelFailed()
                    }
                    return false
                } catch is HeadroomError {
                    return false
                } catch is ModelFailed {
                    return true
                }
            }
            try await service.restart()
            try await waitUntil("nothing is held") {
                let status = try? await client.usage(of: user, deadline: waitLimit)
                return status?.used == 0 && status?.held == 0
            }
        }
    }

    @Test("What the service answers uncounted is not settled, and a commit answered so is sent again until it counts")
    func degraded() async throws {
        for holds in [false, true] {
            let requests = RequestCounter()
            let service = try await ScriptedService.start { line, _ in
                let user = line.split(separator: " ").dropFirst().first ?? ""
                let uncounted = "user=\(user) degraded=1\r\n"
                if line == "PING" { return .answer("+PONG\r\n") }
                if line.hasPrefix("RESERVE") {
                    return holds ? ScriptedService.allowed(line) : .answer("+HELD \(uncounted)")
                }
                return requests.next() < 3 ? .answer("+ALLOWED \(uncounted)") : ScriptedService.allowed(line)
            }
            let client = HeadroomClient(.withTestTimeouts(service.endpoint))
            let outcome = try await client.withHold(.random) { hold in
                #expect(hold.isDegraded == !holds)
                return "an answer"
            }
            // Waits for the last request.
            await client.shutDown()
            guard case .completed("an answer", let decision) = outcome else {
                Issue.record("the outcome is \(outcome)")
                return
            }
            #expect(decision.isAllowed && decision.status.isDegraded)
            let settling = service.requests.filter { $0.hasPrefix("COMMIT") || $0.hasPrefix("RELEASE") }
            #expect(settling.count == (holds ? 3 : 0))
            await service.close()
        }
    }

    @Test("A hold whose request timed out is given back")
    func cancelledEarly() async throws {
        let service = try await ServiceProcess.start()
        let user = UserID.random
        let completed = try await HeadroomClient.with(service) { client in
            _ = try await client.usage(of: user)
            service.pause(true)
            let tasks = (0..<20).map { _ in Task { try await client.withHold(user, ttl: .seconds(3_600)) { $0.key } } }
            for task in tasks.prefix(10) { task.cancel() }
            service.pause(false)
            var completed = 0
            for task in tasks {
                if case .completed = try? await task.value { completed += 1 }
            }
            return completed
        }
        #expect(completed >= 10)
        // The shutdown of the first client has settled all its holds.
        try await HeadroomClient.with(service) { client in
            let status = try await client.usage(of: user)
            #expect(status.used == completed && status.held == 0)
        }
    }
}
