/// Who answers.
protocol Model: Sendable {
    /// The answer to the last message of a conversation, in pieces as they come.
    ///
    /// - Throws: in the sequence, `ModelError`. Who stops reading ends the work.
    func answer(to conversation: [Message]) -> AsyncThrowingStream<String, any Error>
}

/// Why there is no answer: in words for whoever waits for it, and apart from them for the log.
struct ModelError: Error, Sendable {
    static let apology = "I couldn't finish that answer. Nothing was counted — please try again."

    var words = apology
    /// Never what was said.
    var detail: String
    var canRetry = true
}

extension AsyncThrowingStream where Failure == any Error {
    /// Returns a stream that `work` fills. Ending the stream cancels the work. A cancelled reader sees the end of the
    /// stream, and no error.
    static func working(_ work: @escaping @Sendable (Continuation) async throws -> Void) -> AsyncThrowingStream
    where Element: Sendable {
        AsyncThrowingStream { continuation in
            let task = Task {
                do {
                    try await work(continuation)
                    continuation.finish()
                } catch {
                    // Cancelled when the stream has no reader left: it ends without an error then, as by itself.
                    continuation.finish(throwing: Task.isCancelled ? nil : error)
                }
            }
            continuation.onTermination = { _ in task.cancel() }
        }
    }
}
