/// Generates answers.
protocol Model: Sendable {
    /// The answer to the last message of a conversation, in pieces. Cancelling the reader stops the model.
    ///
    /// - Throws: in the sequence, any error: the message is given back, and the user may send it again.
    func answer(to conversation: [Message]) -> AsyncThrowingStream<String, any Error>
}

/// Why there is no answer, for the log. Never contains what a user wrote.
struct ModelError: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }
}

/// Needs no key and no network. The same conversation always gets the same answer.
struct BuiltInModel: Model {
    /// The time between two words.
    let pace: Duration

    private static let openings = ["I hear you.", "Thank you for telling me.", "Let me think aloud with you."]
    private static let endings = [
        "How did that feel?", "What would you like to be different tomorrow?",
        "Tell me a little more, and we'll take it one step at a time.",
    ]

    func answer(to conversation: [Message]) -> AsyncThrowingStream<String, any Error> {
        .produced { continuation in
            for word in BuiltInModel.text(for: conversation).split(separator: " ") {
                if pace > .zero { try await Task.sleep(for: pace) }
                continuation.yield("\(word) ")
            }
        }
    }

    private static func text(for conversation: [Message]) -> String {
        let words = conversation.last?.text.split { !$0.isLetter } ?? []
        let topic = words.filter { (5...30).contains($0.count) }.max { $0.count < $1.count }
        let sentence =
            topic.map { "There is a lot in “\($0)”, more than one message holds." } ?? "It's good to hear from you."
        let choice = conversation.count / 2
        return "\(openings[choice % openings.count]) \(sentence) \(endings[choice % endings.count])"
    }
}

extension AsyncThrowingStream where Failure == any Error, Element: Sendable {
    /// A stream that `produce` fills in a task, which is cancelled when the reader stops reading.
    static func produced(_ produce: @escaping @Sendable (Continuation) async throws -> Void) -> AsyncThrowingStream {
        AsyncThrowingStream { continuation in
            let task = Task {
                do {
                    try await produce(continuation)
                    continuation.finish()
                } catch {
                    continuation.finish(throwing: error)
                }
            }
            continuation.onTermination = { _ in task.cancel() }
        }
    }
}
