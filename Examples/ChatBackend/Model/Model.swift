/// Who answers.
protocol Model: Sendable {
    /// The answer to the last message, in pieces as they come.
    ///
    /// - Throws: in the sequence, `ModelError` for what the model's side did wrong. Who stops reading ends the work.
    func answer(to conversation: [Message]) -> AsyncThrowingStream<String, any Error>
}

/// Why there is no answer, in words for whoever waits for it; what is for the log is apart.
struct ModelError: Error, Sendable {
    static let apology = "I couldn't finish that answer. Nothing was counted — please try again."

    var words = apology
    var detail: String
    var canRetry = true
}
