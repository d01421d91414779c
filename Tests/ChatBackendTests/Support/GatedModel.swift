import Synchronization

@testable import chat_backend

/// Says what the test tells it to, when it tells it to.
final class GatedModel: Model {
    /// One question, which waits for the test.
    final class Question: Sendable {
        let conversation: [Message]
        private let tell: AsyncThrowingStream<String, any Error>.Continuation
        private let abandoned = Mutex(false)

        fileprivate init(_ conversation: [Message], _ tell: AsyncThrowingStream<String, any Error>.Continuation) {
            self.conversation = conversation
            self.tell = tell
            tell.onTermination = { [weak self] termination in
                if case .cancelled = termination { self?.abandoned.withLock { $0 = true } }
            }
        }

        /// Nobody reads the answer any more.
        var isAbandoned: Bool { abandoned.withLock { $0 } }

        func say(_ piece: String) { tell.yield(piece) }

        func end(_ error: (any Error)? = nil) { tell.finish(throwing: error) }
    }

    private let asked = Mutex<[Question]>([])

    var questions: [Question] { asked.withLock { $0 } }

    func answer(to conversation: [Message]) -> AsyncThrowingStream<String, any Error> {
        AsyncThrowingStream { tell in
            let question = Question(conversation, tell)
            asked.withLock { $0.append(question) }
        }
    }
}
