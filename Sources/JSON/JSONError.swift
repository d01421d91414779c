/// Why a text is not accepted as JSON. The description is the rest of a sentence whose subject is the text, such as
/// "the body", and repeats nothing of it.
public struct JSONError: Error, Sendable, Equatable, CustomStringConvertible {
    public enum Kind: Sendable {
        case malformed
        /// Not UTF-8.
        case encoding
        /// More values, or nested deeper, than the limits permit.
        case tooLarge
    }

    public let kind: Kind
    public let description: String

    init(_ kind: Kind, _ description: String) {
        self.kind = kind
        self.description = description
    }

    static let notJSON = JSONError(.malformed, "is not JSON")
}
