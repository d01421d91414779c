import Foundation
import HeadroomClient
import TestSupport
import Testing

@testable import chat_backend

@Suite("A choice of models", .timeLimit(.minutes(10)))
struct ModelChoiceTests {
    /// A service whose plan has one message with the large model, for which it offers the small one.
    private func service() async throws -> ServiceProcess {
        let database = try await TestDatabase.fresh()
        try await database.psql.execute(
            """
            insert into headroom.plan_limits (plan, kind, name, allowance, fallback)
            values ('paid', 'model', 'large', 1, 'small'), ('paid', 'model', 'small', null, null)
            """
        )
        return try await ServiceProcess.start(databaseURL: database.conninfo)
    }

    private func withChat(_ service: ServiceProcess, _ body: (RunningChat) async throws -> Void) async throws {
        try await RunningChat.with(service, "--model-name", "large=Large", "--model-name", "small") {
            try await body($0)
        }
    }

    @Test("The page has the models, what is left of each, and why a message with one would be refused")
    func page() async throws {
        let service = try await service()
        let user = try await service.user()
        try await withChat(service) { chat in
            let start = try await chat.page(user)
            let models = try #require(start["models"] as? [[String: String]])
            #expect(models == [["name": "large", "label": "Large"], ["name": "small", "label": "small"]])
            #expect(start.int("usage", "models", "large", "model_remaining") == 1)
            #expect(start.text("usage", "models", "small", "model") == "small")
            #expect(!start.has("usage", "models", "small", "model_remaining"))
            var changes = try await chat.changes(user)
            _ = try await service.request { try await $0.consume(user, model: "large") }
            let changed = try #require(try await changes.next("usage") { $0.int("used") == 1 })
            #expect(changed.text("display") == "hidden" && !changed.has("reason"))
            #expect(changed.text("models", "large", "reason") == "model_limit_reached")
            #expect(changed.text("models", "large", "fallback") == "small")
            #expect(changed.has("models", "large", "banner") && !changed.has("models", "small", "reason"))
        }
    }

    @Test("A refused message is sent again with the fallback under the same id, and counted once, for that model")
    func fallback() async throws {
        let service = try await service()
        let user = try await service.user()
        try await withChat(service) { chat in
            // Without a model it is the first one.
            var first = try await chat.send(user)
            try await chat.answer(0, "With the large one")
            #expect(try await first.next("sent")?.int("usage", "models", "large", "model_remaining") == 0)
            let id = UUID()
            let refused = try await chat.send(user, id: id, model: "large").rest()
            #expect(refused.map(\.name) == ["blocked"] && chat.model.questions.count == 1)
            let fallback = try #require(refused.first?.text("models", "large", "fallback"))
            var again = try await chat.send(user, id: id, model: fallback)
            try await chat.answer(1, "With the small one")
            #expect(try await again.next("sent")?.text("message", "text") == "With the small one")
            try await service.settled(user, used: 2)
            for (model, used) in [("large", 1), ("small", 1)] as [(ModelName, Int)] {
                let usage = try await service.request { try await $0.usage(of: user, model: model) }
                #expect(usage.model?.used == used, "\(model)")
            }
        }
    }

    @Test("A model that the page does not offer is refused")
    func unknown() async throws {
        let service = try await ServiceProcess.start()
        try await withChat(service) { chat in
            let body = #"{"id": "\#(UUID())", "text": "Hello", "model": "medium"}"#
            let response = try await chat.post("/users/\(UserID.random)/messages", body)
            #expect(response.status == .badRequest)
            #expect(chat.model.questions.isEmpty)
        }
    }

    @Test("Each choice asks the API for the model of its name")
    func names() throws {
        let flags = ["--model", "http://127.0.0.1/v1", "--model-name", "lab/gpt-5=GPT=5", "--model-name", "gpt-5-mini"]
        let choices = try ChatBackend.parse(flags).makeChoices(nil, key: nil)
        #expect(choices.map(\.name) == ["lab/gpt-5", "gpt-5-mini"])
        #expect(choices.map(\.label) == ["GPT=5", "gpt-5-mini"])
        #expect(choices.map { ($0.model as? OpenAIModel)?.name } == ["lab/gpt-5", "gpt-5-mini"])
        #expect(throws: (any Error).self) { try ChatBackend.parse(["--model-name", "not a name"]) }
        #expect(throws: (any Error).self) { try ChatBackend.parse(["--model-name", "="]) }
    }
}
