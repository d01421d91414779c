import TestSupport
import Testing

@testable import HeadroomClient

@Suite("Cancelled and timed-out requests")
struct CancellationTests {
    @Test("A cancelled task sends nothing")
    func beforehand() async throws {
        let service = try await ScriptedService.start { line, _ in
            line == "PING" ? .answer("+PONG\r\n") : ScriptedService.allowed(line)
        }
        let client = HeadroomClient(.withTestTimeouts(service.endpoint))
        try await client.ping()
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await client.consume(.random)
        }
        let error = await #expect(throws: HeadroomError.self) { try await task.value }
        #expect(error?.code == .cancelled && error?.message.contains("before it was sent") == true)
        try await client.ping()
        #expect(service.requests == ["PING", "PING"])
        await client.shutDown()
        await service.close()
    }

    @Test("The error of a cancelled request says that it may have been counted")
    func afterwards() async throws {
        let service = try await ScriptedService.start { _, _ in .nothing }
        let client = HeadroomClient(.withTestTimeouts(service.endpoint))
        let task = Task { try await client.consume(.random) }
        try await waitUntil("it is sent") { !service.requests.isEmpty }
        task.cancel()
        let error = await #expect(throws: HeadroomError.self) { try await task.value }
        #expect(error?.code == .cancelled && error?.message.contains("after it was sent") == true && error?.key != nil)
        await client.shutDown()
        try await waitUntil("the connection is closed, though the answer never came") { service.openConnections == 0 }
        await service.close()
    }

    @Test("A silent connection is closed even if every request is cancelled before its timeout")
    func impatient() async throws {
        let service = try await ScriptedService.start { line, connection in
            connection == 1 ? .nothing : ScriptedService.allowed(line)
        }
        var configuration = HeadroomClient.Configuration.withTestTimeouts(service.endpoint)
        configuration.attemptTimeout = .milliseconds(300)
        let client = HeadroomClient(configuration)
        try await waitUntil("one request is answered") {
            let sent = service.requests.count
            let task = Task { try await client.consume(.random) }
            try await waitUntil("it is sent") { service.requests.count > sent }
            if service.connections == 1 { task.cancel() }
            return (try? await task.value) != nil
        }
        #expect(service.connections > 1)
        await client.shutDown()
        await service.close()
    }

    @Test("A hold that was never sent is not released")
    func nothingHeld() async throws {
        var configuration = HeadroomClient.Configuration.withTestTimeouts(try await ScriptedService.endpointOfNobody())
        configuration.shutdownTimeout = .seconds(60)
        let client = HeadroomClient(configuration)
        let task = Task { try await client.withHold(.random) { _ in } }
        try await waitUntil("it waits") { client.admission.underWay == 1 }
        task.cancel()
        await #expect(throws: HeadroomError.self) { _ = try await task.value }
        #expect(client.admission.underWay == 0)
        await client.shutDown()
    }

    @Test("A hold whose answer cannot be decoded is released")
    func notUnderstood() async throws {
        let service = try await ScriptedService.start { line, _ in
            line.hasPrefix("RESERVE") ? .answer("-INTERNAL reference 1\r\n") : ScriptedService.allowed(line)
        }
        let client = HeadroomClient(.withTestTimeouts(service.endpoint))
        let error = await #expect(throws: HeadroomError.self) { try await client.withHold(.random) { _ in } }
        #expect(error?.code == .internal)
        #expect(service.requests.map { $0.prefix { $0 != " " } } == ["RESERVE", "RELEASE"])
        await client.shutDown()
        await service.close()
    }

    @Test("The maximum of waiting requests time out, and one more fails at once")
    func many() async throws {
        var configuration = HeadroomClient.Configuration.withTestTimeouts(try await ScriptedService.endpointOfNobody())
        configuration.requestsMaximum = 4_096
        // Many times as long as starting them takes.
        configuration.deadline = .seconds(10)
        let client = HeadroomClient(configuration)
        let waiting = (0..<configuration.requestsMaximum).map { _ in Task { try await client.consume(.random) } }
        try await waitUntil("as many wait as may") { client.admission.underWay == configuration.requestsMaximum }
        let refusal = await #expect(throws: HeadroomError.self) { try await client.consume(.random) }
        #expect(refusal?.code == .tooManyRequests)
        var codes: [HeadroomError.Code?: Int] = [:]
        for task in waiting {
            let error = await #expect(throws: HeadroomError.self) { try await task.value }
            codes[error?.code, default: 0] += 1
        }
        #expect(codes == [.unreachable: configuration.requestsMaximum])
        await client.shutDown()
    }

    @Test("The maximum of waiting requests are answered when a service starts")
    func manyAnswered() async throws {
        let service = try await ScriptedService.start { line, connection in
            connection == 1
                ? .answerAndClose("-OVERLOADED retry_ms=1 too many connections\r\n") : ScriptedService.allowed(line)
        }
        let client = HeadroomClient(.withTestTimeouts(service.endpoint))
        let answered = try await withThrowingTaskGroup(of: Bool.self) { group in
            for _ in 0..<4_096 { group.addTask { try await client.consume(.random).isAllowed } }
            return try await group.reduce(0) { $0 + ($1 ? 1 : 0) }
        }
        #expect(answered == 4_096)
        await client.shutDown()
        await service.close()
    }
}
