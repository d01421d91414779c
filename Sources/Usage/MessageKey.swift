/// The caller's key for one message, unique within the user. A repeated request with the same key counts once.
///
/// A string literal is a key. An empty literal, or one of more than 128 bytes, stops the program.
public struct MessageKey: Hashable, Sendable {
    public static let lengthBytes = 1...128

    public let text: String

    /// Makes a key of this text. Keys are compared byte by byte, so two spellings of a composed letter are two keys.
    ///
    /// - Throws: if the text is empty or has more than 128 bytes in UTF-8.
    public init(_ text: String) throws(InvalidMessageKey) {
        let count = text.utf8.count
        guard MessageKey.lengthBytes.contains(count) else { throw InvalidMessageKey(lengthBytes: count) }
        self.text = text
    }

    /// Makes a key of an id of any length: `sha256:` and the SHA-256 of its UTF-8 bytes as 64 lower-case hexadecimal
    /// digits. Every version of this library derives the same key from an id.
    ///
    /// - Throws: if the id is empty, because all messages without an id would have the same key.
    public init(digestOf id: String) throws(InvalidMessageKey) {
        var id = id
        guard !id.isEmpty else { throw InvalidMessageKey(lengthBytes: 0) }
        let digest = id.withUTF8 { MessageKeyDigest.hexadecimalSHA256(of: UnsafeRawBufferPointer($0)) }
        self.init(validated: "sha256:" + digest)
    }

    /// Makes a key of a text that is valid as one; any other text stops the program.
    package init(validated text: String) {
        precondition(
            MessageKey.lengthBytes.contains(text.utf8.count),
            "a key must have 1 to 128 bytes; use MessageKey(digestOf:) for a longer id"
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
        self.init(validated: text)
    }
}

/// The error for a text that cannot be a key.
public struct InvalidMessageKey: Error, Hashable, CustomStringConvertible {
    /// The length of the text in UTF-8.
    public let lengthBytes: Int

    public var description: String {
        lengthBytes == 0
            ? "a key must not be empty; give each message its own id"
            : "a key must have 1 to 128 bytes, and this text has \(lengthBytes); "
                + "use MessageKey(digestOf:) for a longer id"
    }
}
