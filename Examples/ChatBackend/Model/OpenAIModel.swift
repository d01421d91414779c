import AsyncHTTPClient
import Foundation
import NIOCore

/// Any API that streams answers as OpenAI's chat completions do.
struct OpenAIModel: Model {
    struct Configuration: Sendable {
        /// With the version: https://api.openai.com/v1.
        var url: URL
        var name: String
        /// Sent as a bearer token; nil for an API on this machine, say.
        var key: String?
        /// Until the first byte, and from each to the next.
        var silence: Duration = .seconds(30)
        /// From the question to the end of the answer.
        var whole = Exchange.answerTimeMaximum
    }

    let configuration: Configuration
    let client: HTTPClient

    /// What a model is told of a conversation: its end.
    static let messagesMaximum = 20
    private static let instructions = "You are a warm and attentive companion. Answer in a few sentences."

    init(_ configuration: Configuration, client: HTTPClient) {
        self.configuration = configuration
        self.client = client
    }

    /// A client for it, which the caller shuts down.
    static func client(for configuration: Configuration) -> HTTPClient {
        var settings = HTTPClient.Configuration(
            redirectConfiguration: .disallow,
            timeout: .init(connect: .seconds(10), read: TimeAmount(configuration.silence))
        )
        // The key goes where the setting says, and nowhere else.
        settings.httpVersion = .http1Only
        return HTTPClient(eventLoopGroupProvider: .singleton, configuration: settings)
    }

    private struct Body: Encodable {
        struct Said: Encodable {
            var role: String
            var content: String
        }

        var model: String
        var messages: [Said]
        var stream = true
    }

    func answer(to conversation: [Message]) -> AsyncThrowingStream<String, any Error> {
        .working { tell in
            try await withThrowingTaskGroup(of: Void.self) { tasks in
                tasks.addTask { try await ask(conversation) { tell.yield($0) } }
                tasks.addTask {
                    try await Task.sleep(for: configuration.whole)
                    throw ModelError(detail: "the model's API took too long over an answer")
                }
                defer { tasks.cancelAll() }
                try await tasks.next()
            }
        }
    }

    private func ask(_ conversation: [Message], tell: (String) -> Void) async throws {
        let response: HTTPClientResponse
        do {
            response = try await client.execute(request(conversation), timeout: TimeAmount(configuration.whole))
        } catch let error as CancellationError {
            throw error
        } catch {
            // Its text could hold the URL, and that a password.
            throw ModelError(detail: "the model's API cannot be reached: \(type(of: error))")
        }
        guard response.status == .ok else { throw OpenAIModel.refusal(response.status.code) }
        var reading = CompletionReading()
        do {
            for try await bytes in response.body {
                for piece in try reading.read(bytes) { tell(piece) }
                if reading.isComplete { return }
            }
        } catch let error as HTTPClientError {
            throw ModelError(detail: "the model's API broke off: \(error.shortDescription)")
        }
        guard reading.isComplete else { throw ModelError(detail: "the model's API ended before its answer did") }
    }

    private func request(_ conversation: [Message]) -> HTTPClientRequest {
        var request = HTTPClientRequest(url: configuration.url.appending(path: "chat/completions").absoluteString)
        request.method = .POST
        request.headers.add(name: "Content-Type", value: "application/json")
        request.headers.add(name: "Accept", value: "text/event-stream")
        if let key = configuration.key { request.headers.add(name: "Authorization", value: "Bearer \(key)") }
        let said = conversation.suffix(OpenAIModel.messagesMaximum)
            .map { Body.Said(role: $0.role.rawValue, content: $0.text) }
        let body = Body(
            model: configuration.name,
            messages: [Body.Said(role: "system", content: OpenAIModel.instructions)] + said
        )
        request.body = .bytes(JSONAnswer.data(body))
        return request
    }

    private static func refusal(_ status: UInt) -> ModelError {
        // Too many, or its own trouble: it may pass. The rest is a setting of ours, and asking again does not mend it.
        let mayPass = status == 408 || status == 429 || status >= 500
        return ModelError(
            words: mayPass ? ModelError.apology : "I can't answer right now: the chat's model isn't set up right.",
            detail: "the model's API answered \(status); are --model, --model-name and CHAT_MODEL_KEY right?",
            canRetry: mayPass
        )
    }
}
