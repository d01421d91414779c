import Engine

/// A value of a page that takes a while to load.
enum Figure<Value: Sendable>: Sendable {
    /// - Parameters:
    ///   - error: why the last attempt to load a newer value failed.
    ///   - isReloading: a newer value is being loaded.
    case loaded(Value, age: Duration, error: EngineError?, isReloading: Bool = false)
    /// The first value is being loaded.
    case loading
    case failed(EngineError)

    var value: Value? {
        if case .loaded(let value, _, _, _) = self { value } else { nil }
    }

    var age: Duration? {
        if case .loaded(_, let age, _, _) = self { age } else { nil }
    }

    /// A newer value will arrive.
    var isLoading: Bool {
        switch self {
        case .loaded(_, _, _, let isReloading): isReloading
        case .loading: true
        case .failed: false
        }
    }

    var error: EngineError? {
        switch self {
        case .loaded(_, _, let error, _): error
        case .loading: nil
        case .failed(let error): error
        }
    }
}

extension EngineError {
    /// The title of a notice on a page.
    var headline: String {
        (code == .unavailable || code == .unreachable) && self != .reportTimedOut
            ? "Database unavailable." : "Some figures could not be loaded."
    }

    /// Why a figure is not shown, and what to do.
    var advice: String {
        switch code {
        case .unavailable where self == .reportTimedOut:
            "The table is too large to be read within report-timeout-ms. Increase that setting."
        case .unreachable, .unavailable, .unknown:
            "The database cannot be reached at the moment. No data is lost; reload the page in a moment."
        case .overloaded:
            "The service is busy. Reload the page in a moment."
        case .notFound, .badArgument, .conflict, .expired, .internal:
            "This could not be loaded. The service’s log says why."
        }
    }
}
