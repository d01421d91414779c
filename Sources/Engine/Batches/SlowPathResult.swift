import Usage

/// What the slow path did for one request.
struct Performed: Equatable {
    enum Verdict: String {
        case ok, allowed, blocked, held, released, conflict, expired
        case unknownKey = "unknown_key"
        case releasedKey = "released_key"
    }

    /// The snapshot after the request; for a repeated key, that of the first time.
    var snapshot: UsageSnapshot
    /// Nil when the database says something that this binary does not know.
    var verdict: Verdict?
    /// Messages that were counted, held or given back by this very request.
    var messages: Int
    var isReplay: Bool

    /// By this very request; what is held counts when it is committed.
    var messagesCounted: Int { verdict == .allowed && !isReplay ? messages : 0 }

    func outcome(of operation: EngineOperation, user: UserID) -> Outcome {
        switch verdict {
        case .ok:
            return .answer(snapshot.usage(of: user))
        case .allowed:
            return .answer(
                Answer(
                    user: user,
                    status: .allowed,
                    snapshot: snapshot,
                    crossed: crossed(operation),
                    isReplay: isReplay
                )
            )
        case .held:
            return .answer(
                Answer(user: user, status: .held, snapshot: snapshot, crossed: crossed(operation), isReplay: isReplay)
            )
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
        case nil: return .failure(Performed.disagreement)
        }
    }

    /// The tier into which the request moved the user. Committing moves nobody: what was held counted as used.
    private func crossed(_ operation: EngineOperation) -> Tier? {
        guard messages > 0 else { return nil }
        var before = snapshot
        switch operation {
        case .consume: before.used -= messages
        case .reserve: before.held -= messages
        default: return nil
        }
        return snapshot.tier > before.tier ? snapshot.tier : nil
    }

    private func blocked(_ operation: EngineOperation, _ user: UserID) -> Outcome {
        let messages: Int
        switch operation {
        case .consume(let count, _), .reserve(let count, _, _), .check(let count): messages = count
        default: return .failure(Performed.disagreement)
        }
        // The database refused by the same rule; if it did not, somebody must know rather than a user be told nonsense.
        guard let refusal = snapshot.refusal(of: messages) else { return .failure(Performed.disagreement) }
        return .answer(snapshot.blocked(refusal, messages: messages, user: user))
    }

    private static let disagreement = EngineError(
        .internal,
        "the database and the service disagree about this request; please report it"
    )
}
