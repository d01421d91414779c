import LineProtocol
import MetricsTestKit
import TestSupport
import Testing

@testable import HeadroomClient

@Suite("Peers that are not a Headroom service")
struct ForeignPeerTests {
    @Test("A server of another protocol is tried less and less often, and the error quotes it")
    func otherProtocol() async throws {
        let service = try await ScriptedService.start { _, _ in .answerAndClose("HTTP/1.1 400 Bad Request\r\n\r\n") }
        var configuration = HeadroomClient.Configuration.withTestTimeouts(service.endpoint)
        configuration.deadline = .seconds(5)
        let client = HeadroomClient(configuration)
        let error = await #expect(throws: HeadroomError.self) { try await client.usage(of: .random) }
        #expect(error?.code == .unreachable && error?.underlying is MalformedReply, "\(String(describing: error))")
        // Pauses of 25 ms, 50 ms and so on up to a second; if they did not grow there would be hundreds.
        #expect((1...40).contains(service.connections), "\(service.connections) connections in five seconds")
        await client.shutDown()
        await service.close()
    }

    @Test("A line without an end closes the connection")
    func endless() async throws {
        let service = try await ScriptedService.start { _, connection in
            connection == 1 ? .answer("+" + String(repeating: "x", count: 200_000)) : .answer("+PONG\r\n")
        }
        let client = HeadroomClient(.withTestTimeouts(service.endpoint))
        try await client.ping()
        #expect(service.connections == 2)
        await client.shutDown()
        await service.close()
    }

    @Test("An answer that cannot be decoded fails its own request only")
    func notUnderstood() async throws {
        let strange = UserID.random
        let service = try await ScriptedService.start { line, _ in
            line.contains("\(strange)")
                ? .answer("+ALLOWED user=\(strange) plan=pro state=of_a_newer_service\r\n")
                : ScriptedService.allowed(line)
        }
        let client = HeadroomClient(.withTestTimeouts(service.endpoint))
        async let other = client.consume(.random)
        let error = await #expect(throws: HeadroomError.self) { try await client.consume(strange) }
        #expect(error?.code == .malformedReply && error?.message.contains("state") == true)
        #expect(try await other.isAllowed)
        #expect(try await client.consume(.random).isAllowed)
        #expect(service.connections == 1)
        await client.shutDown()
        await service.close()
    }

    @Test("A subscription may take longer to be confirmed than a request's timeout")
    func slowSubscription() async throws {
        let service = try await ScriptedService.start { line, _ in
            line.hasPrefix("SUBSCRIBE")
                ? .answerLater("*3\r\n$9\r\nsubscribe\r\n$1\r\nx\r\n:1\r\n", .seconds(1))
                : ScriptedService.allowed(line)
        }
        var configuration = HeadroomClient.Configuration.withTestTimeouts(service.endpoint)
        configuration.deadline = .milliseconds(300)
        let client = HeadroomClient(configuration)
        for await _ in client.changes(of: .random) { break }
        #expect(service.requests.filter { $0.hasPrefix("SUBSCRIBE") }.count == 1)
        await client.shutDown()
        await service.close()
    }

    @Test("An answer that does not match the request is an error with the request's key")
    func otherKind() async throws {
        let service = try await ScriptedService.start { _, _ in .answer("+OK\r\n") }
        let client = HeadroomClient(.withTestTimeouts(service.endpoint))
        let error = await #expect(throws: HeadroomError.self) { try await client.consume(.random) }
        #expect(error?.code == .malformedReply && error?.key != nil)
        let key: MessageKey = "message-1"
        let errors = [
            await #expect(throws: HeadroomError.self) { try await client.reserve(.random, key: key) },
            await #expect(throws: HeadroomError.self) { try await client.commit(.random, key: key) },
            await #expect(throws: HeadroomError.self) { try await client.release(.random, key: key) },
            await #expect(throws: HeadroomError.self) { try await client.grant(.random, messages: 1, key: key) },
        ]
        #expect(errors.map { $0?.key } == [key, key, key, key])
        await client.shutDown()
        await service.close()
    }

    @Test("An answer to another request permits nothing")
    func otherRequest() async throws {
        // A reservation is answered as a count, a count as a reservation, and anything else as usage.
        let service = try await ScriptedService.start { line, _ in
            let other = line.hasPrefix("RESERVE") ? "CONSUME" : line.hasPrefix("CONSUME") ? "RESERVE" : "USAGE"
            return ScriptedService.allowed(line.replacing(/^\w+/, with: other))
        }
        let client = HeadroomClient(.withTestTimeouts(service.endpoint))
        let key: MessageKey = "message-1"
        let errors = [
            await #expect(throws: HeadroomError.self) { try await client.consume(.random) },
            await #expect(throws: HeadroomError.self) { try await client.check(.random) },
            await #expect(throws: HeadroomError.self) { try await client.reserve(.random, key: key) },
            await #expect(throws: HeadroomError.self) { try await client.commit(.random, key: key) },
            await #expect(throws: HeadroomError.self) { try await client.forget(.random) },
            await #expect(throws: HeadroomError.self) {
                try await client.withHold(.random) { _ in Issue.record("the body must not run") }
            },
        ]
        #expect(errors.map { $0?.code } == Array(repeating: .malformedReply, count: errors.count))
        await client.shutDown()
        await service.close()
    }

    @Test("An answer to a release without the number of messages is an error")
    func releaseWithoutNumber() async throws {
        let service = try await ScriptedService.start { line, _ in ScriptedService.allowed(line) }
        let client = HeadroomClient(.withTestTimeouts(service.endpoint))
        let error = await #expect(throws: HeadroomError.self) { try await client.release(.random, key: "message-1") }
        #expect(error?.code == .malformedReply && error?.key == "message-1")
        await client.shutDown()
        await service.close()
    }

    @Test("Unknown codes are counted together, and the client's own errors are counted")
    func codes() async throws {
        let metrics = TestMetrics()
        let service = try await ScriptedService.start { line, _ in .answer("-WEIRD\(line.count) text\r\n") }
        let client = HeadroomClient(.withTestTimeouts(service.endpoint), logger: .init(label: "test"), metrics: metrics)
        let error = await #expect(throws: HeadroomError.self) { try await client.ping() }
        #expect(error?.code.rawValue == "WEIRD4")
        await client.shutDown()
        _ = try? await client.withHold(.random) { _ in }
        _ = try? await client.ping()
        let name = ClientMetrics.Name.errors.rawValue
        #expect(try metrics.expectCounter(name, [("code", "other")]).totalValue == 1)
        #expect(try metrics.expectCounter(name, [("code", "shutdown")]).totalValue == 2)
        await service.close()
    }
}
