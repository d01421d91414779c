import AsyncHTTPClient
import Foundation
import HTTPTypes
import Hummingbird
import Logging
import ServiceLifecycle
import Synchronization
import TestSupport
import Testing

@testable import chat_backend

@Suite("A model behind an API like OpenAI's", .timeLimit(.minutes(10)))
struct OpenAIModelTests {
    /// What came to the server of the test, and what it answers.
    private final class API: Sendable {
        let requests = Mutex<[(authorization: String?, body: Event)]>([])
        let status: HTTPResponse.Status
        /// Nil after them is silence without an end.
        let pieces: [String?]

        init(status: HTTPResponse.Status = .ok, _ pieces: [String?]) {
            self.status = status
            self.pieces = pieces
        }

        func answer(_ request: Request) async throws -> Response {
            let body = Event(name: "request", body: Data(buffer: try await request.body.collect(upTo: 1_048_576)))
            requests.withLock { $0.append((request.headers[.authorization], body)) }
            return Response(
                status: status,
                headers: [.contentType: "text/event-stream"],
                body: ResponseBody { [pieces] writer in
                    for piece in pieces {
                        guard let piece else {
                            try await Task.sleep(for: .seconds(3_600))
                            return
                        }
                        try await writer.write(ByteBuffer(string: piece))
                    }
                    try await writer.finish(nil)
                }
            )
        }
    }

    private func with(
        _ api: API,
        key: String? = "a-key",
        change: (inout OpenAIModel.Configuration) -> Void = { _ in },
        _ body: (OpenAIModel) async throws -> Void
    ) async throws {
        let router = Router()
        router.post("/v1/chat/completions") { request, _ in try await api.answer(request) }
        let (ports, opened) = AsyncStream.makeStream(of: Int.self)
        let logger = Logger.silent
        let application = Application(
            router: router,
            configuration: .init(address: .hostname("127.0.0.1", port: 0)),
            onServerRunning: { opened.yield($0.localAddress?.port ?? 0) },
            logger: logger
        )
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask { try await application.run() }
            var iterator = ports.makeAsyncIterator()
            let port = try #require(await iterator.next())
            let url = try #require(URL(string: "http://127.0.0.1:\(port)/v1"))
            var configuration = OpenAIModel.Configuration(url: url, name: "a-model", key: key)
            change(&configuration)
            let client = OpenAIModel.client(for: configuration)
            do {
                try await body(OpenAIModel(configuration, client: client))
                try await client.shutdown()
            } catch {
                try? await client.shutdown()
                throw error
            }
            tasks.cancelAll()
        }
    }

    private static let conversation = [
        Message(id: "1", role: .user, text: "Hello"), Message(id: "1-answer", role: .assistant, text: "Hi"),
        Message(id: "2", role: .user, text: "Tell me a story"),
    ]

    private func pieces(_ model: OpenAIModel) async throws -> [String] {
        var pieces: [String] = []
        for try await piece in model.answer(to: Self.conversation) { pieces.append(piece) }
        return pieces
    }

    private static func chunk(_ text: String) -> String {
        "data: {\"choices\":[{\"delta\":{\"content\":\"\(text)\"}}]}\n\n"
    }

    @Test("Is asked with its name, its key and the conversation, and streams")
    func streams() async throws {
        let api = API([Self.chunk("Once"), Self.chunk(" upon"), "data: [DONE]\n\n"])
        try await with(api) { model in
            let pieces = try await pieces(model)
            #expect(pieces == ["Once", " upon"])
        }
        let request = try #require(api.requests.withLock { $0.first })
        #expect(request.authorization == "Bearer a-key")
        #expect(request.body.text("model") == "a-model" && request.body["stream"] as? Bool == true)
        let messages = try #require(request.body["messages"] as? [[String: String]])
        #expect(messages.map { $0["role"] } == ["system", "user", "assistant", "user"])
        #expect(messages.last?["content"] == "Tell me a story")
    }

    @Test("Needs no key where the API asks for none")
    func keyless() async throws {
        let api = API([Self.chunk("Hi"), "data: [DONE]\n\n"])
        try await with(api, key: nil) { model in
            let pieces = try await pieces(model)
            #expect(pieces == ["Hi"])
        }
        #expect(api.requests.withLock { $0.first?.authorization } == nil)
    }

    @Test(
        "An error of the API is told, and whether it may pass",
        arguments: [
            (400, false), (401, false), (404, false), (302, false), (408, true), (429, true), (500, true), (503, true),
        ]
    )
    func errors(status: Int, canRetry: Bool) async throws {
        let api = API(status: .init(code: status), ["{\"error\": {\"message\": \"secret\"}}"])
        try await with(api) { model in
            let error = await #expect(throws: ModelError.self) { try await pieces(model) }
            #expect(error?.canRetry == canRetry && error?.detail.contains("\(status)") == true)
            #expect(error?.detail.contains("secret") == false)
        }
    }

    @Test("An answer that breaks off, falls silent, or takes too long is none", arguments: 0...2)
    func unfinished(kind: Int) async throws {
        let ends: [[String?]] = [[Self.chunk("Once")], [Self.chunk("Once"), nil], [nil]]
        try await with(API(ends[kind])) { configuration in
            configuration.silence = .milliseconds(kind == 1 ? 300 : 60_000)
            configuration.whole = .milliseconds(kind == 2 ? 300 : 60_000)
        } _: { model in
            let error = await #expect(throws: ModelError.self) { try await pieces(model) }
            #expect(error?.canRetry == true)
        }
    }

    @Test("An API that is not there is told as such")
    func away() async throws {
        let url = try #require(URL(string: "http://127.0.0.1:1/v1"))
        let configuration = OpenAIModel.Configuration(url: url, name: "a-model", key: nil)
        let client = OpenAIModel.client(for: configuration)
        let model = OpenAIModel(configuration, client: client)
        let error = await #expect(throws: ModelError.self) { try await pieces(model) }
        #expect(error?.detail.contains("cannot be reached") == true)
        try await client.shutdown()
    }
}
