/// Why a request with an event is refused. The text says what is wrong and what to do. It goes to the sender and repeats no
/// values; for a direct event it may repeat the name of an unknown field.
public struct BillingError: Error, Sendable, Equatable, CustomStringConvertible {
    public enum Kind: Sendable {
        /// Not what the store sends.
        case malformed
        /// In another encoding than UTF-8.
        case encoding
        /// Larger, or nested deeper, than anything the store sends.
        case tooLarge
        /// Not from the store, or not shown to be.
        case unverified
        /// Genuine, and meant for somebody else: another app, another environment.
        case elsewhere
    }

    public let kind: Kind
    public let description: String

    public init(_ kind: Kind, _ description: String) {
        self.kind = kind
        self.description = description
    }

    static func malformed(_ description: String) -> BillingError {
        BillingError(.malformed, description)
    }
}
