import Engine
import LineProtocol
import Usage

extension ReplyError {
    package init(_ error: EngineError) {
        switch error.code {
        case .unreachable, .unavailable:
            self.init(code: .unavailable, retryAfterMilliseconds: 500, text: error.message)
        case .unknown: self.init(code: .unknown, text: error.message)
        case .overloaded:
            let retry = error.retryAfterMilliseconds ?? 100
            self.init(code: .overloaded, retryAfterMilliseconds: retry, text: error.message)
        case .notFound: self.init(code: .notFound, text: error.message)
        case .badArgument: self.init(code: .badArg, text: error.message)
        case .conflict: self.init(code: .conflict, text: error.message)
        case .expired: self.init(code: .expired, text: error.message)
        case .internal: self.init(code: .internal, text: error.message)
        }
    }

    /// The reply to a failed `USAGE`. A client may show it to a person, so the text of a transient error is friendly.
    package init(reading error: EngineError, in vocabulary: Vocabulary) {
        self.init(error)
        if error.isTransient { text = Phrase(.unreadable).text(in: vocabulary) }
    }
}
