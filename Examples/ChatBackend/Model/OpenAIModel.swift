import Foundation

/// Any API that answers as OpenAI's chat completions do.
struct OpenAIModel: Model {
    struct Configuration: Sendable {
        var url: URL
        var name: String
        var key: String?
    }

    let configuration: Configuration

    func answer(to conversation: [Message]) -> AsyncThrowingStream<String, any Error> {
        AsyncThrowingStream { $0.finish(throwing: ModelError(detail: "not there yet", canRetry: false)) }
    }
}
