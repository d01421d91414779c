import AsyncHTTPClient
import Foundation
import NIOCore

/// A model behind an API that is compatible with OpenAI's streaming chat completions.
struct OpenAIModel: Model {
    /// The base URL, including the version: https://api.openai.com/v1.
    let url: URL
    let name: String
    /// Sent as a bearer token.
    let key: String?
    let client: HTTPClient

    /// The time for one answer, from the request to its last byte.
    static let answerTimeout = Duration.seconds(300)
    /// Limits the memory for a line that never ends. Lines of an answer are much shorter.
    private static let lineBytesMaximum = 262_144
    /// A request contains only the latest messages of the conversation.
    private static let messagesMaximum = 20
    private static let instructions = "You are a warm and attentive companion. Answer in a few sentences."

    private struct RequestBody: Encodable {
        struct Entry: Encodable {
            var role: String
            var content: String
        }

        var model: String
        var messages: [Entry]
        var stream = true
    }

    private struct Chunk: Decodable {
        struct Choice: Decodable {
            struct Delta: Decodable {
                var content: String?
            }

            var delta: Delta?
            var finishReason: String?
        }

        var choices: [Choice]
    }

    func answer(to conversation: [Message]) -> AsyncThrowingStream<String, any Error> {
        .produced { continuation in
            try await withThrowingTaskGroup { tasks in
                tasks.addTask { try await stream(conversation, to: continuation) }
                tasks.addTask {
                    try await Task.sleep(for: OpenAIModel.answerTimeout)
                    throw ModelError("the model's API took too long to answer")
                }
                try await tasks.next()
                tasks.cancelAll()
            }
        }
    }

    private func stream(
        _ conversation: [Message],
        to continuation: AsyncThrowingStream<String, any Error>.Continuation
    ) async throws {
        let response = try await client.execute(request(conversation), timeout: TimeAmount(OpenAIModel.answerTimeout))
        guard response.status == .ok else {
            throw ModelError("the model's API answered \(response.status.code); check --model and CHAT_MODEL_KEY")
        }
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        var pending = ByteBuffer()
        for try await bytes in response.body {
            pending.writeImmutableBuffer(bytes)
            while let end = pending.readableBytesView.firstIndex(of: UInt8(ascii: "\n")) {
                let line = pending.readString(length: end - pending.readerIndex + 1) ?? ""
                guard line.hasPrefix("data:") else { continue }
                let data = line.dropFirst(5).trimmingCharacters(in: .whitespacesAndNewlines)
                if data == "[DONE]" { return }
                let choice = try decoder.decode(Chunk.self, from: Data(data.utf8)).choices.first
                if let piece = choice?.delta?.content { continuation.yield(piece) }
                // Some APIs never send [DONE].
                if choice?.finishReason != nil { return }
            }
            guard pending.readableBytes <= OpenAIModel.lineBytesMaximum else { break }
        }
        throw ModelError("the model's API did not complete its answer")
    }

    private func request(_ conversation: [Message]) throws -> HTTPClientRequest {
        var request = HTTPClientRequest(url: url.appending(path: "chat/completions").absoluteString)
        request.method = .POST
        request.headers.add(name: "Content-Type", value: "application/json")
        if let key { request.headers.add(name: "Authorization", value: "Bearer \(key)") }
        let entries = conversation.suffix(OpenAIModel.messagesMaximum)
            .map { RequestBody.Entry(role: $0.role.rawValue, content: $0.text) }
        let instructions = RequestBody.Entry(role: "system", content: OpenAIModel.instructions)
        request.body = .bytes(
            ByteBuffer(data: try JSONEncoder().encode(RequestBody(model: name, messages: [instructions] + entries)))
        )
        return request
    }
}
