import Engine

/// Something that a page shows and that takes a while to find out.
enum Figure<Value: Sendable>: Sendable {
    /// Read so long ago.
    ///
    /// - Parameters:
    ///   - trouble: why it could not be read again, where that was tried.
    ///   - isRenewing: it is old, and a new one is being read.
    case known(Value, age: Duration, trouble: EngineError?, isRenewing: Bool = false)
    /// It is being read; nobody knows it yet.
    case counting
    case missing(EngineError)

    var value: Value? {
        if case .known(let value, _, _, _) = self { value } else { nil }
    }

    var age: Duration? {
        if case .known(_, let age, _, _) = self { age } else { nil }
    }

    /// A newer one will be there in a while.
    var isUnderWay: Bool {
        switch self {
        case .known(_, _, _, let isRenewing): isRenewing
        case .counting: true
        case .missing: false
        }
    }

    var trouble: EngineError? {
        switch self {
        case .known(_, _, let trouble, _): trouble
        case .counting: nil
        case .missing(let error): error
        }
    }
}

extension EngineError {
    /// What is wrong, in a few words above a page.
    var headline: String {
        code == .unavailable && self != .readingTookTooLong ? "The database is away." : "Not everything can be read."
    }

    /// Why a figure is not shown, and what to do, for a person who looks at a page.
    var advice: String {
        switch code {
        case .unavailable where self == .readingTookTooLong:
            "The table is too large to be read within report-timeout-ms. Start the service with a larger one."
        case .unavailable, .unknown:
            "The database cannot be reached at the moment. Nothing is lost; reload the page in a while."
        case .overloaded:
            "Too much is being asked at the moment; reload the page in a while."
        case .notFound, .badArgument, .conflict, .expired, .internal:
            "This could not be read; the service’s log says why."
        }
    }
}
