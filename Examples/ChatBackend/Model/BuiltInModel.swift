/// Needs no key and no network, and says the same to the same conversation.
struct BuiltInModel: Model {
    let pace: Duration

    func answer(to conversation: [Message]) -> AsyncThrowingStream<String, any Error> {
        let pieces = BuiltInModel.text(for: conversation).split(separator: " ", omittingEmptySubsequences: false)
        return AsyncThrowingStream { continuation in
            let work = Task {
                for (index, piece) in pieces.enumerated() {
                    if pace > .zero { try? await Task.sleep(for: pace) }
                    if Task.isCancelled { break }
                    continuation.yield(index == 0 ? String(piece) : " \(piece)")
                }
                continuation.finish()
            }
            continuation.onTermination = { _ in work.cancel() }
        }
    }

    static func text(for conversation: [Message]) -> String {
        let said = conversation.last?.text ?? ""
        return "You said: \(said). Tell me more about it."
    }
}
