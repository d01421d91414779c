import Usage

/// The result of one request on the slow path: an answer, or a failure about the request's key.
struct SlowPathResult: Equatable {
    var outcome: Outcome
    /// The messages that this request itself has counted. Held messages count when they are committed.
    var messagesCounted = 0

    init(_ answer: Answer, messagesCounted: Int = 0) {
        outcome = .answer(answer)
        self.messagesCounted = messagesCounted
    }

    init(_ failure: EngineError) {
        outcome = .failure(failure)
    }

    var answer: Answer? {
        if case .answer(let answer) = outcome { answer } else { nil }
    }
}
