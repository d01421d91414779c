import Engine
import LineProtocol
import Usage

/// The reply to a request that the engine could not execute. It depends on what the request is for.
package enum FallbackReply: Equatable, Sendable {
    /// Whether a message of the user may be sent: CONSUME and CHECK.
    case sending(UserID)
    case reserving(UserID)
    case committing(UserID)
    case releasing(UserID)
    /// Usage that a person reads.
    case reading
    case other

    /// The answer if the engine fails.
    ///
    /// - Parameters:
    ///   - allowsWhenUnavailable: the setting `when-unavailable`: while the database cannot be reached,
    ///   messages are allowed without being counted for certain. A chat that holds messages while it streams goes on
    ///   too: RESERVE, COMMIT and RELEASE are each answered so, and no hold is remembered.
    ///   - vocabulary: that of the request's language.
    package func answer(
        to error: EngineError,
        allowsWhenUnavailable: Bool,
        in vocabulary: Vocabulary
    ) -> Result<UncountedAnswer, ReplyError> {
        if allowsWhenUnavailable, error.isOutage, let answer = uncountedAnswer(in: vocabulary) {
            return .success(answer)
        }
        return .failure(
            self == .reading
                ? ReplyError(reading: error, in: vocabulary)
                : ReplyError(error)
        )
    }

    /// The answer while the database cannot be reached; nil for a request that is refused then.
    private func uncountedAnswer(in vocabulary: Vocabulary) -> UncountedAnswer? {
        func answer(_ user: UserID, _ status: UncountedAnswer.Status) -> UncountedAnswer {
            UncountedAnswer(user: user, status: status, banner: Phrase(.uncounted).text(in: vocabulary))
        }
        return switch self {
        case .sending(let user), .committing(let user): answer(user, .allowed)
        case .reserving(let user): answer(user, .held)
        case .releasing(let user): answer(user, .released)
        case .reading, .other: nil
        }
    }
}

/// The answer to a message that is let through uncounted (`degraded=1`).
package struct UncountedAnswer: Equatable, Sendable {
    package enum Status: Sendable {
        case allowed, held, released
    }

    package var user: UserID
    package var status: Status
    package var banner: String
}
