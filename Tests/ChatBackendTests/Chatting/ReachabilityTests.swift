import Foundation
import HeadroomClient
import Postgres
import TestSupport
import Testing
import Usage

@testable import chat_backend

@Suite("When Headroom cannot be asked", .timeLimit(.minutes(10)))
struct ReachabilityTests {
    /// As in production: a test waits for its end.
    private static let impatient = ChatConfiguration.Patience()

    @Test("With allow, who writes is answered uncounted, and the page is told")
    func allow() async throws {
        let service = try await ServiceProcess.start()
        let user = try await service.user()
        try await RunningChat.with(service, patience: Self.impatient) { chat in
            try await service.crash()
            let events = try await chat.events(user)
            let question = try await chat.question()
            question.say("I'm here")
            question.end()
            let rest = try await events.rest()
            #expect(rest.map(\.name) == ["held", "piece", "sent"])
            #expect(rest.first?["degraded"] as? Bool == true && rest.first?.has("used") == false)
            #expect(rest.last?["usage", "degraded"] as? Bool == true)
            let page = try await chat.page(user)
            #expect(page["usage"] is NSNull && page.text("offline") == Sentence.unreadable.other)
            try await service.restart()
            try await service.settled(user, used: 0)
        }
    }

    @Test("With deny, who writes is told to try again, and the model is not asked")
    func deny() async throws {
        let service = try await ServiceProcess.start()
        let user = try await service.user()
        try await RunningChat.with(service, "--when-unreachable", "deny", patience: Self.impatient) { chat in
            try await service.crash()
            let events = try await chat.send(user)
            #expect(events.map(\.name) == ["failed"])
            #expect(events.first?.text("code") == "UNREACHABLE" && events.first?["can_retry"] as? Bool == true)
            #expect(chat.model.questions.isEmpty)
            #expect(try await chat.page(user).text("offline") == OfflineWords.text(.deny))
        }
    }

    @Test("A service that dies under an answer: the answer stands, and is counted once when the service is back")
    func dying() async throws {
        let service = try await ServiceProcess.start()
        let user = try await service.user()
        // The service lives when the message is held, for which a busy machine may take long.
        try await RunningChat.with(service, patience: .init(answer: .seconds(16))) { chat in
            var events = try await chat.events(user)
            #expect(try await events.next()?.int("held") == 1)
            let question = try await chat.question()
            question.say("To be")
            #expect(try await events.next()?.name == "piece")
            try await service.crash()
            question.say(" continued")
            question.end()
            let sent = try #require(try await events.next("sent"))
            #expect(sent.text("message", "text") == "To be continued")
            #expect(sent["usage", "degraded"] as? Bool == true)
            try await service.restart()
            try await service.settled(user, used: 1)
        }
    }

    @Test("An open page hears that Headroom is gone, that it is back, and what changed meanwhile")
    func pages() async throws {
        let service = try await ServiceProcess.start()
        let user = try await service.user()
        try await RunningChat.with(service, patience: Self.impatient) { chat in
            let response = try await chat.request("GET", "/users/\(user)/changes")
            #expect(response.headers["Content-Type"].first == "text/event-stream")
            var events = EventReader(response)
            #expect(try await events.next("online") != nil)
            #expect(try await events.next("usage")?.text("plan") == "paid")
            try await service.crash()
            #expect(try await events.next("offline")?.text("message") == Sentence.unreadable.other)
            try await service.restart()
            _ = try await service.ask { try await $0.consume(user, messages: 700) }
            #expect(try await events.next("usage") { $0.int("used") == 700 }?.text("display") == "compact")
        }
    }

    @Test("A service whose database is away knows nothing of anybody, and counts as gone")
    func database() async throws {
        let service = try await ServiceProcess.start()
        let user = try await service.user()
        let name = try #require(service.conninfo.firstMatch(of: /dbname=(\w+)/)?.1)
        let shared = try await TestServer.shared()
        func admit(_ isAdmitted: Bool) async throws {
            try await onThread {
                let connection = try Connection.connect(shared)
                defer { connection.close() }
                let script = """
                    alter database \(name) with allow_connections \(isAdmitted);
                    select pg_terminate_backend(pid) from pg_stat_activity where datname = '\(name)'
                    """
                for statement in script.split(separator: ";") {
                    try connection.execute(String(statement), deadline: .now + waitLimit)
                }
            }
        }
        try await RunningChat.with(service, patience: Self.impatient) { chat in
            var events = EventReader(try await chat.request("GET", "/users/\(user)/changes"))
            #expect(try await events.next("usage") != nil)
            try await admit(false)
            #expect(try await events.next("offline") != nil)
            #expect(try await chat.page(user)["usage"] is NSNull)
            try await admit(true)
            #expect(try await events.next("online") != nil)
        }
    }

    @Test("A service that wants a token is asked with the one in the file")
    func token() async throws {
        let service = try await ServiceProcess.start("--authentication", "required")
        let directory = try TemporaryDirectory()
        let file = directory.path + "/token"
        try await service.token("chat", "dashboard").write(toFile: file, atomically: true, encoding: .utf8)
        let user = UserID.random
        try await RunningChat.with(service, "--headroom-token-file", file) { chat in
            var page = EventReader(try await chat.request("GET", "/users/\(user)/changes"))
            #expect(try await page.next("usage")?.int("used") == 0)
            var events = try await chat.events(user)
            let question = try await chat.question()
            question.say("Known")
            question.end()
            #expect(try await events.next("sent")?.int("usage", "used") == 1)
            #expect(try await page.next("usage") { $0.int("used") == 1 } != nil)
        }
    }

    @Test("The words for a policy are the product's own")
    func words() {
        #expect(OfflineWords.text(.allow) == Sentence.unreadable.other)
    }
}
