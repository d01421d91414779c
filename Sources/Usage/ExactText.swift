/// A text from outside, such as an id, that is compared byte by byte, as the database compares it.
///
/// `String` is compared by canonical equivalence: "é" as one scalar equals "e" followed by a combining accent. Such ids
/// are two rows in the database, so they must be two here.
///
/// As a property wrapper, it makes one property of a type be compared byte by byte: `@ExactText var id: String`.
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
        // The comparison of strings comes first: it is fast and nearly always finds that two texts differ.
        lhs.text == rhs.text && lhs.text.utf8.elementsEqual(rhs.text.utf8)
    }

    public func hash(into hasher: inout Hasher) {
        // Texts with the same bytes also have the same hash as strings, which is faster than hashing each byte.
        hasher.combine(text)
    }
}

extension ExactText: Comparable {
    /// Compares by UTF-8 bytes, as PostgreSQL's collation "C" does.
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
