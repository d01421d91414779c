import AsyncHTTPClient
import Foundation
import HeadroomClient
import NIOCore
import TestSupport
import Testing

@testable import chat_backend

@Suite("A chat that is stopped", .timeLimit(.minutes(10)))
struct EndingTests {
    @Test("Ends the open pages, and an answer under way is finished and counted")
    func finishing() async throws {
        let service = try await ServiceProcess.start()
        let user = try await service.user()
        try await RunningChat.with(service) { chat in
            var page = EventReader(try await chat.request("GET", "/users/\(user)/changes"))
            #expect(try await page.next("usage") != nil)
            var events = try await chat.events(user)
            #expect(try await events.next()?.name == "held")
            await chat.shutDown()
            // The page's stream is over while the answer is not.
            _ = try await page.rest()
            let question = try await chat.question()
            question.say("Goodbye")
            question.end()
            #expect(try await events.next("sent")?.int("usage", "used") == 1)
            try await service.settled(user, used: 1)
        }
    }

    @Test("Ends although an answer does not, and gives back what was held for it")
    func cutting() async throws {
        let service = try await ServiceProcess.start()
        let user = try await service.user()
        try await RunningChat.with(service) { chat in
            var events = try await chat.events(user)
            #expect(try await events.next()?.name == "held")
            _ = try await chat.question()
            await chat.shutDown()
            // Whether the client tells of the cut as an end or as an error is its own affair.
            while let event = try? await events.next() { #expect(event.name != "sent") }
        }
        try await service.settled(user, used: 0)
    }

    @Test(
        "The program ends on SIGTERM with status 0 although a page is open, and refuses what it cannot do with another"
    )
    func program() async throws {
        let service = try await ServiceProcess.start()
        let binary = builtProgram("chat-backend")
        let process = Process()
        process.executableURL = binary
        process.arguments = ["--listen", "127.0.0.1:0", "--headroom", "\(service.endpoint)", "--log-level", "error"]
        process.environment = [:]
        let line = try #require(try await process.run(until: /ready chat=http:.*\n/))
        let address = line.dropFirst("ready chat=".count).trimmingCharacters(in: .whitespacesAndNewlines)
        let port = try #require(address.split(separator: ":").last)

        let second = Process()
        second.executableURL = binary
        second.arguments = ["--listen", "127.0.0.1:\(port)", "--headroom", "\(service.endpoint)"]
        second.environment = [:]
        let errors = Pipe()
        second.standardError = errors
        #expect(try await second.run(until: /ready .*\n/) == nil)
        let text = String(decoding: errors.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        #expect(text.contains("--listen 127.0.0.1:\(port) cannot be opened"), "\(text)")
        second.waitUntilExit()
        #expect(second.terminationStatus == 1)

        let page = HTTPClientRequest(url: "http://127.0.0.1:\(port)/users/\(UserID.random)/changes")
        var events = EventReader(try await HTTPClient.shared.execute(page, timeout: TimeAmount(waitLimit)))
        #expect(try await events.next("usage") != nil)
        process.terminate()
        try await waitUntil("the chat has ended") { !process.isRunning }
        #expect(process.terminationStatus == 0)
    }
}
