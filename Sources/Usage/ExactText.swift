/// A text from outside, such as an id, that is compared byte by byte, as the database compares it.
///
/// `String` is compared by canonical equivalence: "é" as one scalar equals "e" followed by a combining accent. Such ids
/// are two rows in the database, so they must be two here.
///
/// As a property wrapper it makes one property of a type be compared so: `@ExactText var id: String`.
@propertyWrapper
public struct ExactText: Hashable, Sendable {
    public var wrappedValue: String

    public var text: String { wrappedValue }

    public init(wrappedValue: String) {
        self.wrappedValue = wrappedValue
    }

    public init(_ text: String) {
        wrappedValue = text
    }

    public static func == (lhs: ExactText, rhs: ExactText) -> Bool {
        // First the fast comparison of strings, which nearly always finds that two texts differ.
        lhs.text == rhs.text && lhs.text.utf8.elementsEqual(rhs.text.utf8)
    }

    public func hash(into hasher: inout Hasher) {
        // Texts with the same bytes have the same hash as strings too, which is faster than to hash each byte.
        hasher.combine(text)
    }
}

extension ExactText: Comparable {
    /// Order by UTF-8 bytes, as PostgreSQL's collation "C".
    public static func < (lhs: ExactText, rhs: ExactText) -> Bool {
        lhs.text.utf8.lexicographicallyPrecedes(rhs.text.utf8)
    }
}

extension ExactText: ExpressibleByStringLiteral {
    public init(stringLiteral text: String) {
        self.init(text)
    }
}

extension ExactText: Codable {
    public init(from decoder: any Decoder) throws {
        wrappedValue = try decoder.singleValueContainer().decode(String.self)
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(text)
    }
}
