import Synchronization

@testable import chat_backend

/// A model whose answers the test writes.
final class ManualModel: Model {
    final class Question: Sendable {
        let conversation: [Message]
        private let continuation: AsyncThrowingStream<String, any Error>.Continuation
        private let cancelled = Mutex(false)

        fileprivate init(
            _ conversation: [Message],
            _ continuation: AsyncThrowingStream<String, any Error>.Continuation
        ) {
            self.conversation = conversation
            self.continuation = continuation
            continuation.onTermination = { [weak self] termination in
                if case .cancelled = termination { self?.cancelled.withLock { $0 = true } }
            }
        }

        /// Whether the reader has stopped reading the answer.
        var isCancelled: Bool { cancelled.withLock { $0 } }

        func send(_ piece: String) { continuation.yield(piece) }

        func finish(throwing error: (any Error)? = nil) { continuation.finish(throwing: error) }
    }

    private let received = Mutex<[Question]>([])

    var questions: [Question] { received.withLock { $0 } }

    func answer(to conversation: [Message]) -> AsyncThrowingStream<String, any Error> {
        AsyncThrowingStream { continuation in
            let question = Question(conversation, continuation)
            received.withLock { $0.append(question) }
        }
    }
}
