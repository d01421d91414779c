import Foundation
import HeadroomClient
import TestSupport
import Testing

@Suite("Replaced tokens, and services that cannot check tokens")
struct TokenTests {
    @Test("Revoking a token after its file has a new one fails no request")
    func replaced() async throws {
        let directory = try TemporaryDirectory()
        let file = directory.path + "/token"
        try Data("old\n".utf8).write(to: URL(filePath: file))
        let service = try await ScriptedService.start { line, connection in
            switch line {
            case "AUTH old" where connection == 1: .answer("+OK\r\n")
            case "AUTH new": .answer("+OK\r\n")
            case _ where line.hasPrefix("AUTH"): .answer("-NOAUTH no live token is that\r\n")
            case _ where connection == 1 && FileManager.default.contents(atPath: file) == Data("new".utf8):
                .answerAndClose("-NOAUTH the token was revoked; closing\r\n")
            default: ScriptedService.allowed(line)
            }
        }
        let client = HeadroomClient(.withTestTimeouts(service.endpoint, credentials: .init(tokenFile: file)))
        #expect(try await client.consume(.random).isAllowed)
        try Data("new".utf8).write(to: URL(filePath: file))
        #expect(try await client.consume(.random).isAllowed)
        #expect(service.connections == 2)
        await client.shutDown()
        await service.close()
    }

    @Test("A refused token fails all waiting requests at once, however the service closes")
    func refused() async throws {
        let service = try await ScriptedService.start { _, _ in .answerAndClose("-NOAUTH no live token is that\r\n") }
        var configuration = HeadroomClient.Configuration.withTestTimeouts(
            service.endpoint,
            credentials: .init(token: "a")
        )
        configuration.backoff = .milliseconds(1)...(.milliseconds(2))
        let client = HeadroomClient(configuration)
        for _ in 0..<20 {
            let error = await #expect(throws: HeadroomError.self) { try await client.consume(.random) }
            #expect(error?.code == .notAuthenticated)
        }
        #expect(service.connections <= 20)
        await client.shutDown()
        await service.close()
    }

    @Test(
        "A service that cannot check the token now is tried again, by requests and by changes",
        arguments: [
            "OVERLOADED retry_ms=1 too many connections", "DRAINING bye", "UNAVAILABLE no database", "INTERNAL x",
        ]
    )
    func busy(answer: String) async throws {
        let service = try await ScriptedService.start { line, connection in
            switch line {
            case _ where line.hasPrefix("AUTH") && connection <= 2: .answerAndClose("-\(answer)\r\n")
            case _ where line.hasPrefix("AUTH"): .answer("+OK\r\n")
            case _ where line.hasPrefix("SUBSCRIBE"): .answer("*3\r\n$9\r\nsubscribe\r\n$1\r\nx\r\n:1\r\n")
            default: ScriptedService.allowed(line)
            }
        }
        let client = HeadroomClient(.withTestTimeouts(service.endpoint, credentials: .init(token: "a")))
        var received = 0
        for await _ in client.changes(of: .random) {
            received += 1
            break
        }
        #expect(received == 1)
        #expect(try await client.consume(.random).isAllowed)
        await client.shutDown()
        await service.close()
    }

    @Test("The error about a token file says whether it is empty or unreadable")
    func files() async throws {
        let directory = try TemporaryDirectory()
        try Data("\n".utf8).write(to: URL(filePath: directory.path + "/empty"))
        let service = try await ScriptedService.start { line, _ in ScriptedService.allowed(line) }
        for (name, words) in [("empty", "is empty"), ("missing", "cannot be read")] {
            let credentials = HeadroomClient.Credentials(tokenFile: "\(directory.path)/\(name)")
            let client = HeadroomClient(.withTestTimeouts(service.endpoint, credentials: credentials))
            let error = await #expect(throws: HeadroomError.self) { try await client.consume(.random) }
            #expect(error?.code == .notAuthenticated && error?.message.contains(words) == true)
            await client.shutDown()
        }
        #expect(service.requests.isEmpty)
        await service.close()
    }
}
