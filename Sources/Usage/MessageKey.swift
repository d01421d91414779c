/// The caller's name for one message, unique within the user: with it a request can be sent again without counting
/// twice.
///
/// A string literal is a key. A literal that has no byte, or more than 128, is a mistake in the program and stops it.
public struct MessageKey: Hashable, Sendable {
    public static let lengthBytes = 1...128

    public let text: String

    /// The text as it is. What the bytes are is the caller's affair; keys are compared byte by byte by the database, so
    /// two spellings of a composed letter are two keys.
    ///
    /// - Throws: when the text is empty or has more than 128 bytes in UTF-8.
    public init(_ text: String) throws(InvalidMessageKey) {
        let count = text.utf8.count
        guard MessageKey.lengthBytes.contains(count) else { throw InvalidMessageKey(lengthBytes: count) }
        self.text = text
    }

    /// The key of an id of any length: `sha256:`, then the SHA-256 of its UTF-8 bytes as 64 lower-case hexadecimal
    /// digits. An id has the same key in every version of this library, and in every program that follows this rule.
    ///
    /// - Throws: when the id is empty, because then all messages without an id would be one.
    public init(digestOf id: String) throws(InvalidMessageKey) {
        var id = id
        guard !id.isEmpty else { throw InvalidMessageKey(lengthBytes: 0) }
        let digest = id.withUTF8 { SHA256.hexadecimalDigest(of: UnsafeRawBufferPointer($0)) }
        self.init(known: "sha256:" + digest)
    }

    /// A text of which its maker knows that it is a key.
    package init(known text: String) {
        precondition(
            MessageKey.lengthBytes.contains(text.utf8.count),
            "a key must have 1 to 128 bytes; make one of a longer id with MessageKey(digestOf:)"
        )
        self.text = text
    }

    public static func == (lhs: MessageKey, rhs: MessageKey) -> Bool {
        lhs.text.utf8.elementsEqual(rhs.text.utf8)
    }

    public func hash(into hasher: inout Hasher) {
        for byte in text.utf8 { hasher.combine(byte) }
    }
}

extension MessageKey: ExpressibleByStringLiteral {
    public init(stringLiteral text: String) {
        self.init(known: text)
    }
}

/// A text cannot be a key.
public struct InvalidMessageKey: Error, Hashable, CustomStringConvertible {
    /// Of the text, in UTF-8.
    public let lengthBytes: Int

    public var description: String {
        lengthBytes == 0
            ? "a key must not be empty; give each message an id of its own where it is made"
            : "a key must have 1 to 128 bytes, and this text has \(lengthBytes); "
                + "make one of a longer id with MessageKey(digestOf:)"
    }
}
