import AsyncHTTPClient
import Foundation
import HTTPTypes
import Hummingbird
import Logging
import Synchronization
import TestSupport
import Testing

@testable import chat_backend

@Suite("Models", .timeLimit(.minutes(10)))
struct ModelTests {
    private static let conversation = [
        Message(id: "1", role: .user, text: "Hello"), Message(id: "1-answer", role: .assistant, text: "Hi"),
        Message(id: "2", role: .user, text: "Tell me a story"),
    ]

    private func pieces(_ model: any Model) async throws -> [String] {
        var pieces: [String] = []
        for try await piece in model.answer(to: Self.conversation) { pieces.append(piece) }
        return pieces
    }

    /// Runs an API that answers every request with these pieces; returns the requests' bodies.
    private func withAPI(
        status: HTTPResponse.Status = .ok,
        _ answer: [String],
        _ body: (OpenAIModel) async throws -> Void
    ) async throws -> [(authorization: String?, body: Event)] {
        let requests = Requests()
        let router = Router()
        router.post("/v1/chat/completions") { request, _ in
            let body = Event(name: "request", body: Data(buffer: try await request.body.collect(upTo: 1_048_576)))
            requests.all.withLock { $0.append((request.headers[.authorization], body)) }
            let answer = ResponseBody { writer in
                for piece in answer { try await writer.write(ByteBuffer(string: piece)) }
                try await writer.finish(nil)
            }
            return Response(status: status, body: answer)
        }
        let (ports, port) = AsyncStream.makeStream(of: Int.self)
        let application = Application(
            router: router,
            configuration: .init(address: .hostname("127.0.0.1", port: 0)),
            onServerRunning: { port.yield($0.localAddress?.port ?? 0) },
            logger: .silent
        )
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask { try await application.run() }
            var iterator = ports.makeAsyncIterator()
            let port = try #require(await iterator.next())
            let url = try #require(URL(string: "http://127.0.0.1:\(port)/v1"))
            try await body(OpenAIModel(url: url, name: "a-model", key: "a-key", client: .shared))
            tasks.cancelAll()
        }
        return requests.all.withLock { $0 }
    }

    private final class Requests: Sendable {
        let all = Mutex<[(authorization: String?, body: Event)]>([])
    }

    private static func chunk(_ text: String) -> String {
        "data: {\"choices\":[{\"delta\":{\"content\":\"\(text)\"}}]}\n\n"
    }

    @Test("An API receives the conversation, and its answer arrives in pieces wherever the bytes are cut")
    func streaming() async throws {
        let whole = Self.chunk("Once") + ": comment\r\n" + Self.chunk(" upon") + "data: [DONE]\n\n"
        let requests = try await withAPI(whole.map { String($0) }) { model in
            let pieces = try await pieces(model)
            #expect(pieces == ["Once", " upon"])
        }
        let request = try #require(requests.first)
        #expect(request.authorization == "Bearer a-key")
        #expect(request.body.text("model") == "a-model" && request.body["stream"] as? Bool == true)
        let messages = try #require(request.body["messages"] as? [[String: String]])
        #expect(messages.map { $0["role"] } == ["system", "user", "assistant", "user"])
        #expect(messages.last?["content"] == "Tell me a story")
    }

    @Test("An error of the API, an unfinished answer and a line without an end are errors")
    func failing() async throws {
        let endless = String(repeating: "x", count: 300_000)
        for (status, answer) in [(500, "{}"), (401, "{}"), (200, Self.chunk("Once")), (200, endless)] {
            _ = try await withAPI(status: .init(code: status), [answer]) { model in
                await #expect(throws: ModelError.self) { try await pieces(model) }
            }
        }
    }

    @Test("The built-in model gives the same answer to the same conversation, in several pieces")
    func builtIn() async throws {
        let model = BuiltInModel(pace: .zero)
        let first = try await pieces(model)
        let second = try await pieces(model)
        #expect(second == first && first.count > 5)
        #expect(first.joined().contains("story"))
    }

    @Test("The built-in model stops between two words when its reader stops")
    func stopping() async throws {
        let model = BuiltInModel(pace: .seconds(3_600))
        let reading = Task { for try await _ in model.answer(to: Self.conversation) {} }
        reading.cancel()
        try await reading.value
    }
}
