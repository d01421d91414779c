import Foundation
import HeadroomClient
import TestSupport
import Testing

@testable import chat_backend

@Suite("A message that is sent again counts once", .timeLimit(.minutes(10)))
struct RepeatedMessageTests {
    @Test("After its end it has the same answer, and the model is not asked again")
    func answered() async throws {
        let service = try await ServiceProcess.start()
        let user = try await service.user()
        try await RunningChat.with(service) { chat in
            let id = UUID()
            let first = try await chat.events(user, id: id)
            let question = try await chat.question()
            question.say("One")
            question.say(" answer")
            question.end()
            #expect(try await first.rest().last?.name == "sent")
            let again = try await chat.send(user, id: id)
            #expect(again.map(\.name) == ["piece", "sent"])
            #expect(again.first?.text("text") == "One answer" && again.last?.text("message", "text") == "One answer")
            #expect(again.last?.int("usage", "used") == 1)
            #expect(chat.model.questions.count == 1)
            try await service.settled(user, used: 1)
        }
    }

    @Test("While it is being answered it is refused, and so is another text under its id")
    func underWay() async throws {
        let service = try await ServiceProcess.start()
        let user = try await service.user()
        try await RunningChat.with(service) { chat in
            let id = UUID()
            var first = try await chat.events(user, id: id)
            #expect(try await first.next()?.name == "held")
            let second = try await chat.post(user, id: id)
            #expect(second.status == .conflict)
            #expect(try await second.problem().code == "UNDERWAY")
            let question = try await chat.question()
            question.say("Done")
            question.end()
            #expect(try await first.next("sent") != nil)
            let other = try await chat.post(user, id: id, "Another text")
            #expect(other.status == .conflict)
            #expect(try await other.problem().code == "CONFLICT")
            try await service.settled(user, used: 1)
        }
    }

    @Test("Many at once under one id: one is answered")
    func racing() async throws {
        let service = try await ServiceProcess.start()
        let user = try await service.user()
        try await RunningChat.with(service) { chat in
            let id = UUID()
            let statuses = try await withThrowingTaskGroup(of: UInt.self) { tasks in
                for _ in 0..<16 {
                    tasks.addTask {
                        let response = try await chat.post(user, id: id)
                        // Read to its end, or the connection is cut and the message given back.
                        _ = try await response.text()
                        return response.status.code
                    }
                }
                let question = try await chat.question()
                var statuses: [UInt] = []
                for _ in 0..<15 { statuses.append(try await tasks.next() ?? 0) }
                question.say("For one of you")
                question.end()
                statuses.append(try await tasks.next() ?? 0)
                return statuses
            }
            #expect(statuses.sorted() == [200] + Array(repeating: 409, count: 15))
            #expect(chat.model.questions.count == 1)
            try await service.settled(user, used: 1)
        }
    }

    @Test("A user has four messages under way at most, and another user is not in the way")
    func tooMany() async throws {
        let service = try await ServiceProcess.start()
        let (user, other) = (try await service.user(), try await service.user())
        try await RunningChat.with(service) { chat in
            var open: [EventReader] = []
            for number in 0..<Conversations.underWayMaximum.user {
                open.append(try await chat.events(user))
                _ = try await chat.question(number)
            }
            let refused = try await chat.post(user)
            #expect(refused.status == .serviceUnavailable && refused.headers["Retry-After"].first == "5")
            #expect(try await refused.problem().code == "OVERLOADED")
            open.append(try await chat.events(other))
            for number in 0..<open.count {
                let question = try await chat.question(number)
                question.say("Here")
                question.end()
                #expect(try await open[number].next("sent") != nil)
            }
            try await service.settled(user, used: 4)
            try await service.settled(other, used: 1)
        }
    }
}
