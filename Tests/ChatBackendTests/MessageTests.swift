import Foundation
import HeadroomClient
import TestSupport
import Testing

@testable import chat_backend

@Suite("Messages are held, answered and counted", .timeLimit(.minutes(10)))
struct MessageTests {
    @Test("The page receives the hold, the pieces, and the count")
    func complete() async throws {
        let service = try await ServiceProcess.start()
        let user = try await service.user()
        try await RunningChat.with(service) { chat in
            var events = try await chat.send(user, "How are you?")
            let held = try #require(try await events.next())
            #expect(held.name == "held" && held.int("held") == 1 && held.int("remaining") == 799)
            #expect(held.text("label") == "Premium" && held.has("accessible"))
            let question = try await chat.question()
            #expect(question.conversation.map(\.text) == ["How are you?"])
            question.send("Fine")
            #expect(try await events.next()?.text("text") == "Fine")
            question.send(", thanks")
            #expect(try await events.next()?.text("text") == ", thanks")
            question.finish()
            let sent = try #require(try await events.next())
            #expect(sent.name == "sent" && sent.text("message", "text") == "Fine, thanks")
            #expect(sent.int("usage", "used") == 1 && sent.int("usage", "held") == 0)
            #expect(try await events.next() == nil)
            #expect(try await chat.messageCount(user) == 2)
            try await service.settled(user, used: 1)
        }
    }

    @Test("A blocked message has a reason, and the model is not called")
    func blocked() async throws {
        let service = try await ServiceProcess.start()
        let user = try await service.user("free")
        try await RunningChat.with(service) { chat in
            let events = try await chat.send(user).rest()
            #expect(events.map(\.name) == ["blocked"])
            #expect(events.first?.text("reason") == "no_subscription" && events.first?.text("display") == "blocked")
            #expect(chat.model.questions.isEmpty)
            #expect(try await chat.messageCount(user) == 0)
        }
    }

    @Test("A model that fails or answers nothing costs nothing, and the same message can be sent again")
    func failing() async throws {
        let service = try await ServiceProcess.start()
        let user = try await service.user()
        try await RunningChat.with(service) { chat in
            let id = UUID()
            for (number, error) in [ModelError("of the test"), nil].enumerated() {
                let events = try await chat.send(user, id: id)
                try await chat.question(number).finish(throwing: error)
                let failed = try #require(try await events.rest().last)
                #expect(failed.name == "failed" && failed["can_retry"] as? Bool == false)
                try await service.settled(user, used: 0)
            }
            var again = try await chat.send(user, id: id)
            try await chat.answer(2, "Yes")
            #expect(try await again.next("sent")?.text("message", "text") == "Yes")
            try await service.settled(user, used: 1)
        }
    }

    @Test("Closing the connection gives the message back and stops the model")
    func stopping() async throws {
        let service = try await ServiceProcess.start()
        let user = try await service.user()
        try await RunningChat.with(service) { chat in
            let reading = Task { try await chat.send(user).rest() }
            let question = try await chat.question()
            question.send("Once upon a time")
            #expect(try await service.usage(of: user).held == 1)
            reading.cancel()
            _ = try? await reading.value
            try await waitUntil("the model is stopped") { question.isCancelled }
            try await service.settled(user, used: 0)
            #expect(try await chat.messageCount(user) == 0)
        }
    }

    @Test("However stopping and the end of an answer race, an answer is kept exactly if it is counted")
    func stoppingAtTheEnd() async throws {
        let service = try await ServiceProcess.start()
        let seed = SeededGenerator.newSeed()
        print("seed \(seed) of the moments of stopping")
        var generator = SeededGenerator(seed: seed)
        let rounds = (0..<25).map { _ in Int.random(in: 0...1_000, using: &generator) }
        try await RunningChat.with(service) { chat in
            for (number, yields) in rounds.enumerated() {
                let user = try await service.user()
                let reading = Task { try await chat.send(user).rest() }
                try await chat.answer(number, "The end")
                for _ in 0..<yields { await Task.yield() }
                reading.cancel()
                _ = try? await reading.value
                try await waitUntil("the chat and the service agree") {
                    let count = try await chat.messageCount(user)
                    let status = try await service.usage(of: user)
                    return status.held == 0 && status.used == count / 2
                }
            }
        }
    }

    @Test("An answer that never ends is cut and counted")
    func endless() async throws {
        let service = try await ServiceProcess.start()
        let user = try await service.user()
        try await RunningChat.with(service) { chat in
            var events = try await chat.send(user)
            let question = try await chat.question()
            let piece = String(repeating: "and on ", count: 100)
            let maximum = MessageHandler.answerBytesMaximum
            for _ in 0...(maximum / piece.utf8.count) { question.send(piece) }
            let length = try #require(try await events.next("sent")?.text("message", "text")).utf8.count
            #expect(length > maximum && length <= maximum + piece.utf8.count)
            try await service.settled(user, used: 1)
        }
    }

    @Test("A message sent twice under one id is answered and counted once")
    func repeated() async throws {
        let service = try await ServiceProcess.start()
        let user = try await service.user()
        try await RunningChat.with(service) { chat in
            let id = UUID()
            var first = try await chat.send(user, id: id)
            #expect(try await first.next("held") != nil)
            let meanwhile = try await chat.send(user, id: id).rest()
            #expect(meanwhile.map(\.name) == ["failed"] && meanwhile.first?["can_retry"] as? Bool == true)
            try await chat.answer(0, "One", " answer")
            #expect(try await first.next("sent") != nil)
            let again = try await chat.send(user, id: id).rest()
            #expect(again.map(\.name) == ["piece", "sent"])
            #expect(again.first?.text("text") == "One answer" && again.last?.int("usage", "used") == 1)
            let other = try await chat.send(user, id: id, "Another text").rest()
            #expect(other.map(\.name) == ["failed"] && other.first?["can_retry"] as? Bool == false)
            #expect(chat.model.questions.count == 1)
            try await service.settled(user, used: 1)
        }
    }

    @Test("A shutdown ends open pages, and gives back a message that is being answered")
    func shutdown() async throws {
        let service = try await ServiceProcess.start()
        let user = try await service.user()
        try await RunningChat.with(service) { chat in
            var page = try await chat.changes(user)
            #expect(try await page.next("usage") != nil)
            var events = try await chat.send(user)
            #expect(try await events.next()?.name == "held")
            _ = try await chat.question()
            await chat.shutDown()
            _ = try? await page.rest()
            while let event = try? await events.next() { #expect(event.name != "sent") }
        }
        try await service.settled(user, used: 0)
    }

    @Test("Messages without text, with too much of it, or of a form of another site are refused")
    func refused() async throws {
        let service = try await ServiceProcess.start()
        try await RunningChat.with(service) { chat in
            let path = "/users/\(UserID.random)/messages"
            let long = String(repeating: "é", count: 4_001)
            let message = { (text: String) in #"{"id": "\#(UUID())", "text": "\#(text)"}"# }
            for (body, status) in [("", 400), ("{}", 400), (message(" "), 400), (message(long), 400)] {
                let response = try await chat.post(path, body)
                #expect(response.status.code == UInt(status), "\(body)")
            }
            #expect(try await chat.post(path, message(String(repeating: "x", count: 40_000))).status.code == 413)
            #expect(try await chat.post(path, message("Hello"), type: "text/plain").status.code == 415)
            #expect(try await chat.post("/users/ann/messages", message("Hello")).status.code == 404)
            #expect(chat.model.questions.isEmpty)
        }
    }
}
