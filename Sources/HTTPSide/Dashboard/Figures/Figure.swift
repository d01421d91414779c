import UsageStore

/// Something that a page shows and that takes a while to find out.
enum Figure<Value: Sendable>: Sendable {
    /// Read so long ago.
    ///
    /// - Parameter trouble: why it could not be read anew, where that was tried.
    case known(Value, age: Duration, trouble: StoreError?)
    /// It is being read; nobody knows it yet.
    case counting
    case missing(StoreError)

    var value: Value? {
        if case .known(let value, _, _) = self { value } else { nil }
    }

    var age: Duration? {
        if case .known(_, let age, _) = self { age } else { nil }
    }

    var trouble: StoreError? {
        switch self {
        case .known(_, _, let trouble): trouble
        case .counting: nil
        case .missing(let error): error
        }
    }
}

extension StoreError {
    /// Why a figure is not shown, and what to do, for a person who looks at a page.
    var advice: String {
        switch code {
        case .unavailable, .unknown:
            "The database cannot be reached at the moment. Nothing is lost; reload the page in a while."
        case .overloaded:
            "Too much is being asked at the moment; reload the page in a while."
        case .notFound, .badArgument, .conflict, .expired, .internal:
            "This could not be read; the service’s log says why."
        }
    }
}
