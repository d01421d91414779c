import Usage

/// The result of one request on the slow path.
struct SlowPathResult: Equatable {
    enum Verdict: String {
        case ok, allowed, blocked, held, released, conflict, expired
        case unknownKey = "unknown_key"
        case releasedKey = "released_key"
    }

    /// The snapshot after the request; for a repetition, that of the first answer.
    var snapshot: UsageSnapshot
    var verdict: Verdict
    /// Messages counted, held or given back by this request itself.
    var messages: Int
    var isReplay: Bool

    /// By this request itself. Held messages count when they are committed.
    var messagesCounted: Int { verdict == .allowed && !isReplay ? messages : 0 }

    func outcome(of operation: BatchedOperation, user: UserID) -> Outcome {
        switch verdict {
        case .ok:
            return .answer(snapshot.usage(of: user))
        case .allowed:
            return .answer(answer(.allowed, to: operation, user))
        case .held:
            return .answer(answer(.held, to: operation, user))
        case .blocked:
            return blocked(operation, user)
        case .released:
            return .answer(
                Answer(user: user, status: .ok, snapshot: snapshot, released: messages, isReplay: isReplay)
            )
        case .conflict: return .failure(.keyConflict)
        case .releasedKey: return .failure(.keyReleased)
        case .expired: return .failure(.holdExpired)
        case .unknownKey: return .failure(.noSuchKey)
        }
    }

    private func answer(_ status: Answer.Status, to operation: BatchedOperation, _ user: UserID) -> Answer {
        Answer(user: user, status: status, snapshot: snapshot, crossed: crossed(operation), isReplay: isReplay)
    }

    /// The tier that the request moved the user into. Committing moves no user, because held messages count as used.
    private func crossed(_ operation: BatchedOperation) -> Tier? {
        guard messages > 0 else { return nil }
        var before = snapshot
        switch operation {
        case .consume: before.used -= messages
        case .reserve: before.held -= messages
        case .commit, .release, .check, .usage: return nil
        }
        return snapshot.tier > before.tier ? snapshot.tier : nil
    }

    private func blocked(_ operation: BatchedOperation, _ user: UserID) -> Outcome {
        switch operation {
        case .consume(let messages, _), .reserve(let messages, _, _), .check(let messages):
            // By the rule that has refused it. If it does not, an error is better than a wrong answer.
            guard let reason = snapshot.refusal(of: messages) else { return .failure(.notExecuted) }
            return .answer(snapshot.blocked(reason, messages: messages, user: user))
        case .commit, .release, .usage:
            return .failure(.notExecuted)
        }
    }
}
