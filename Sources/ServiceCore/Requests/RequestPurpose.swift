import Engine
import LineProtocol
import Usage

/// What a request is for, as far as the reply to a failure depends on it.
package enum RequestPurpose: Equatable, Sendable {
    /// Whether a message of the user may be sent: CONSUME and CHECK.
    case sending(UserID)
    case reserving(UserID)
    case committing(UserID)
    case releasing(UserID)
    /// Usage that a person reads.
    case reading
    case other

    /// The reply if the engine fails.
    ///
    /// - Parameter allowsWhenUnavailable: the setting `when-unavailable`: while the database cannot be reached,
    ///   messages are allowed uncounted. A chat that holds messages while it streams goes on as others do. Nothing is
    ///   remembered: each of its requests is answered so.
    package func reply(to error: EngineError, allowsWhenUnavailable: Bool) -> Reply {
        if allowsWhenUnavailable, error.code == .unreachable, let reply = uncounted { return reply }
        return .error(
            self == .reading
                ? ReplyError(reading: error, allowsWhenUnavailable: allowsWhenUnavailable) : ReplyError(error)
        )
    }

    /// Nil for a request that lets no message through.
    private var uncounted: Reply? {
        switch self {
        case .sending(let user), .committing(let user): .uncounted("ALLOWED user=\(user)")
        case .reserving(let user): .uncounted("HELD user=\(user)")
        case .releasing(let user): .uncounted("OK user=\(user) released=0")
        case .reading, .other: nil
        }
    }
}

extension Reply {
    fileprivate static func uncounted(_ fields: String) -> Reply {
        .text("\(fields) degraded=1 banner=\"\(Phrase(.uncounted).text)\"")
    }
}
