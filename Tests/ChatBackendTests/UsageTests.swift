import Foundation
import HeadroomClient
import Postgres
import TestSupport
import Testing
import Usage

@testable import chat_backend

@Suite("An open page follows the usage", .timeLimit(.minutes(10)))
struct UsageTests {
    @Test("Every open page receives changes made elsewhere")
    func changes() async throws {
        let service = try await ServiceProcess.start()
        let user = try await service.user()
        try await RunningChat.with(service) { chat in
            var first = try await chat.changes(user)
            var second = try await chat.changes(user)
            #expect(try await first.next("usage")?.int("used") == 0)
            _ = try await service.request { try await $0.consume(user, messages: 800) }
            let blocked = try #require(try await first.next("usage") { $0.int("used") == 800 })
            #expect(blocked.text("display") == "blocked" && blocked.has("label") && blocked.has("accessible"))
            #expect(try await second.next("usage") { $0.int("used") == 800 } != nil)
            _ = try await service.request { try await $0.resetUsage(of: user) }
            #expect(try await first.next("usage") { $0.int("used") == 0 }?.text("display") == "hidden")
        }
    }

    @Test("While Headroom is unreachable, allow answers without counting, and the page shows a sentence")
    func allow() async throws {
        let service = try await ServiceProcess.start()
        let user = try await service.user()
        try await RunningChat.with(service, deadline: .seconds(2)) { chat in
            var page = try await chat.changes(user)
            #expect(try await page.next("online") != nil)
            try await service.crash()
            #expect(try await page.next("offline")?.text("message") == Phrase(.uncounted).text)
            let events = try await chat.send(user)
            try await chat.answer(0, "I'm here")
            let rest = try await events.rest()
            #expect(rest.map(\.name) == ["held", "piece", "sent"])
            #expect(rest.first?["degraded"] as? Bool == true && rest.first?.has("used") == false)
            let start = try await chat.page(user)
            #expect(!start.has("usage") && start.text("offline") == Phrase(.uncounted).text)
            try await service.restart()
            _ = try await service.request { try await $0.consume(user, messages: 700) }
            #expect(try await page.next("usage") { $0.int("used") == 700 }?.text("display") == "compact")
        }
    }

    @Test("While Headroom is unreachable, deny asks the page to try again, and the model is not called")
    func deny() async throws {
        let service = try await ServiceProcess.start()
        let user = try await service.user()
        try await RunningChat.with(service, "--when-unreachable", "deny", deadline: .seconds(2)) { chat in
            try await service.crash()
            let events = try await chat.send(user).rest()
            #expect(events.map(\.name) == ["failed"] && events.first?["can_retry"] as? Bool == true)
            #expect(chat.model.questions.isEmpty)
            #expect(try await chat.page(user).text("offline") == UnreachablePolicy.deny.offlineMessage)
        }
    }

    @Test("When the service dies during an answer, the answer stays and is counted once later")
    func dying() async throws {
        let service = try await ServiceProcess.start()
        let user = try await service.user()
        try await RunningChat.with(service, deadline: .seconds(16)) { chat in
            var events = try await chat.send(user)
            #expect(try await events.next()?.int("held") == 1)
            let question = try await chat.question()
            question.send("To be")
            try await service.crash()
            question.send(" continued")
            question.finish()
            #expect(try await events.next("sent")?.text("message", "text") == "To be continued")
            try await service.restart()
            try await service.settled(user, used: 1)
        }
    }

    @Test("A service without its database counts as unreachable")
    func database() async throws {
        let service = try await ServiceProcess.start()
        let user = try await service.user()
        let name = try #require(service.conninfo.firstMatch(of: /dbname=(\w+)/)?.1)
        let shared = try await TestServer.shared()
        func allowConnections(_ isAllowed: Bool) async throws {
            try await onThread {
                let connection = try DatabaseConnection.connect(shared)
                defer { connection.close() }
                let script = """
                    alter database \(name) with allow_connections \(isAllowed);
                    select pg_terminate_backend(pid) from pg_stat_activity where datname = '\(name)'
                    """
                for statement in script.split(separator: ";") {
                    try connection.execute(String(statement), deadline: .now + waitLimit)
                }
            }
        }
        try await RunningChat.with(service) { chat in
            var events = try await chat.changes(user)
            #expect(try await events.next("usage") != nil)
            try await allowConnections(false)
            #expect(try await events.next("offline") != nil)
            try await allowConnections(true)
            #expect(try await events.next("online") != nil)
        }
    }

    @Test("The token of the environment authenticates the chat")
    func token() async throws {
        let service = try await ServiceProcess.start("--authentication", "required")
        let environment = ["HEADROOM_TOKEN": try await service.token("chat", "dashboard")]
        let user = UserID.random
        try await RunningChat.with(service, environment: environment) { chat in
            var page = try await chat.changes(user)
            #expect(try await page.next("usage")?.int("used") == 0)
            var events = try await chat.send(user)
            try await chat.answer(0, "Known")
            #expect(try await events.next("sent")?.int("usage", "used") == 1)
        }
    }

    @Test("The sentence for allow is the service's own")
    func offlineMessage() { #expect(UnreachablePolicy.allow.offlineMessage == Phrase(.uncounted).text) }
}
