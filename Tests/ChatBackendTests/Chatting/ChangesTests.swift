import Foundation
import HeadroomClient
import TestSupport
import Testing

@testable import chat_backend

@Suite("An open page hears what changes", .timeLimit(.minutes(10)))
struct ChangesTests {
    @Test("A message from another device, and an operator's reset")
    func live() async throws {
        let service = try await ServiceProcess.start()
        let user = try await service.user()
        try await RunningChat.with(service) { chat in
            var events = EventReader(try await chat.request("GET", "/users/\(user)/changes"))
            #expect(try await events.next("usage")?.int("used") == 0)
            _ = try await service.ask { try await $0.consume(user, messages: 800) }
            let blocked = try #require(try await events.next("usage") { $0.int("used") == 800 })
            #expect(blocked.text("display") == "blocked" && blocked.has("label") && blocked.has("accessible"))
            _ = try await service.ask { try await $0.resetUsage(of: user) }
            #expect(try await events.next("usage") { $0.int("used") == 0 }?.text("display") == "hidden")
        }
    }

    @Test("Two pages of one user both hear, and one that is closed is in nobody's way")
    func several() async throws {
        let service = try await ServiceProcess.start()
        let user = try await service.user()
        try await RunningChat.with(service) { chat in
            var first = EventReader(try await chat.request("GET", "/users/\(user)/changes"))
            let closed = Task {
                var events = EventReader(try await chat.request("GET", "/users/\(user)/changes"))
                while try await events.next() != nil {}
            }
            #expect(try await first.next("usage")?.int("used") == 0)
            closed.cancel()
            _ = try? await closed.value
            var second = EventReader(try await chat.request("GET", "/users/\(user)/changes"))
            _ = try await service.ask { try await $0.consume(user) }
            #expect(try await first.next("usage") { $0.int("used") == 1 } != nil)
            #expect(try await second.next("usage") { $0.int("used") == 1 } != nil)
        }
    }

    @Test("A place is free again when whoever had it is gone")
    func places() {
        let places = Places(maximum: 2)
        var taken = [places.take(), places.take()]
        #expect(taken.allSatisfy { $0 != nil } && places.take() == nil)
        taken.removeLast()
        #expect(places.take() != nil)
        withExtendedLifetime(taken) {}
    }
}
