import Foundation
import HeadroomClient
import TestSupport
import Testing

@testable import chat_backend

@Suite("A message is held, answered and counted", .timeLimit(.minutes(10)))
struct ExchangeTests {
    @Test("The page hears what is held, then pieces, then what is counted")
    func whole() async throws {
        let service = try await ServiceProcess.start()
        let user = try await service.user()
        try await RunningChat.with(service) { chat in
            var events = try await chat.events(user, "How are you?")
            let held = try #require(try await events.next())
            #expect(held.name == "held")
            #expect(held.int("held") == 1 && held.int("used") == 0 && held.int("remaining") == 799)
            #expect(held.text("label") == "Premium" && held.has("accessible"))
            let question = try await chat.question()
            #expect(question.conversation.map(\.text) == ["How are you?"])
            question.say("Fine")
            #expect(try await events.next()?.text("text") == "Fine")
            question.say(", thanks")
            #expect(try await events.next()?.text("text") == ", thanks")
            question.end()
            let sent = try #require(try await events.next())
            #expect(sent.name == "sent" && sent.text("message", "text") == "Fine, thanks")
            #expect(sent.int("usage", "used") == 1 && !sent.has("usage", "held"))
            #expect(try await events.next() == nil)
            let page = try await chat.page(user)
            #expect(
                (page["messages"] as? [[String: Any]])?.map { $0["text"] as? String } == [
                    "How are you?", "Fine, thanks",
                ]
            )
            try await service.settled(user, used: 1)
        }
    }

    @Test("Who may not send hears why, the model is not asked and nothing is kept")
    func blocked() async throws {
        let service = try await ServiceProcess.start()
        let user = try await service.user("free")
        try await RunningChat.with(service) { chat in
            let events = try await chat.send(user)
            #expect(events.map(\.name) == ["blocked"])
            #expect(events.first?.text("reason") == "no_subscription")
            #expect(events.first?.text("display") == "blocked" && events.first?.text("label") == "Free")
            #expect(chat.model.questions.isEmpty)
            #expect((try await chat.page(user)["messages"] as? [Any])?.isEmpty == true)
        }
    }

    @Test("A model that fails costs nothing, and the same message may be sent again")
    func failing() async throws {
        let service = try await ServiceProcess.start()
        let user = try await service.user()
        try await RunningChat.with(service) { chat in
            let id = UUID()
            var events = try await chat.events(user, id: id)
            #expect(try await events.next()?.name == "held")
            let question = try await chat.question()
            question.say("Well")
            question.end(ModelError(words: "Not today.", detail: "of the test"))
            let failed = try #require(try await events.next("failed"))
            #expect(failed.text("code") == "MODEL" && failed.text("message") == "Not today.")
            #expect(failed["can_retry"] as? Bool == true)
            #expect(try await events.next() == nil)
            try await service.settled(user, used: 0)
            #expect((try await chat.page(user)["messages"] as? [Any])?.isEmpty == true)

            var again = try await chat.events(user, id: id)
            let second = try await chat.question(1)
            second.say("Yes")
            second.end()
            #expect(try await again.next("sent")?.text("message", "text") == "Yes")
            try await service.settled(user, used: 1)
        }
    }

    @Test("An answer without a word is none, and costs nothing")
    func empty() async throws {
        let service = try await ServiceProcess.start()
        let user = try await service.user()
        try await RunningChat.with(service) { chat in
            let events = try await chat.events(user)
            try await chat.question().end()
            #expect(try await events.rest().map(\.name) == ["held", "failed"])
            try await service.settled(user, used: 0)
        }
    }

    @Test("Cutting the connection gives the message back, and stops the model")
    func stopping() async throws {
        let service = try await ServiceProcess.start()
        let user = try await service.user()
        try await RunningChat.with(service) { chat in
            let reading = Task {
                var events = try await chat.events(user)
                while let event = try await events.next() {
                    if event.name == "sent" { return true }
                }
                return false
            }
            let question = try await chat.question()
            question.say("Once upon a time")
            #expect(try await service.usage(of: user).held == 1)
            reading.cancel()
            _ = try? await reading.value
            try await waitUntil("the model is not read any more") { question.isAbandoned }
            try await service.settled(user, used: 0)
            #expect((try await chat.page(user)["messages"] as? [Any])?.isEmpty == true)
        }
    }

    @Test("However the Stop button and the end of an answer race, what is kept is what is counted")
    func stoppingAtTheEnd() async throws {
        let service = try await ServiceProcess.start()
        let seed = SeededGenerator.newSeed()
        print("seed \(seed) of the moments of stopping")
        var generator = SeededGenerator(seed: seed)
        let rounds = (0..<25).map { _ in Int.random(in: 0...1_000, using: &generator) }
        try await RunningChat.with(service) { chat in
            for (number, turns) in rounds.enumerated() {
                let user = try await service.user()
                let reading = Task { try await chat.send(user) }
                let question = try await chat.question(number)
                question.say("The end")
                question.end()
                for _ in 0..<turns { await Task.yield() }
                reading.cancel()
                _ = try? await reading.value
                try await waitUntil("it is settled, the same way on both sides") {
                    let kept = (try await chat.page(user)["messages"] as? [Any])?.count ?? -1
                    let status = try await service.usage(of: user)
                    return status.held == 0 && status.used == kept / 2
                }
            }
        }
    }

    @Test("An answer that never ends is cut, kept and counted")
    func endless() async throws {
        let service = try await ServiceProcess.start()
        let user = try await service.user()
        try await RunningChat.with(service) { chat in
            var events = try await chat.events(user)
            let question = try await chat.question()
            let piece = String(repeating: "and on ", count: 100)
            for _ in 0...(Exchange.answerBytesMaximum / piece.utf8.count) { question.say(piece) }
            let sent = try #require(try await events.next("sent"))
            let length = try #require(sent.text("message", "text")).utf8.count
            #expect(length > Exchange.answerBytesMaximum && length <= Exchange.answerBytesMaximum + piece.utf8.count)
            try await service.settled(user, used: 1)
        }
    }

    @Test("A hold that is over when the answer comes costs nothing; the answer stands")
    func expired() async throws {
        let service = try await ServiceProcess.start()
        let user = try await service.user()
        try await RunningChat.with(service, "--hold-ttl", "1") { chat in
            var events = try await chat.events(user)
            // On a busy machine its time is over before the numbers are read.
            #expect(try await events.next()?.name == "held")
            let question = try await chat.question()
            try await waitUntil("the hold's time is over") { try await service.usage(of: user).held == 0 }
            question.say("Sorry for the wait")
            question.end()
            let sent = try #require(try await events.next("sent"))
            #expect(sent.int("usage", "used") == 0)
            try await service.settled(user, used: 0)
            #expect((try await chat.page(user)["messages"] as? [Any])?.count == 2)
        }
    }
}
