/// Why a request with an event is rejected. The text says what is wrong and what to do. The sender receives it, so it
/// repeats no values; for a direct event it may repeat the name of an unknown field.
public struct BillingError: Error, Sendable, Equatable, CustomStringConvertible {
    public enum Kind: Sendable {
        /// The body is not in the format of the store.
        case malformed
        /// The body is not UTF-8.
        case encoding
        /// The body is larger, or nested deeper, than any event of the store.
        case tooLarge
        /// The event is not proved to come from the store.
        case unverified
        /// The event is genuine, but for another app or environment.
        case elsewhere
    }

    public let kind: Kind
    public let description: String

    public init(_ kind: Kind, _ description: String) {
        self.kind = kind
        self.description = description
    }

    package static func malformed(_ description: String) -> BillingError {
        BillingError(.malformed, description)
    }
}
