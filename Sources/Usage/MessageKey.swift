/// The caller's name for one message, unique within the user: with it a request can be sent again without counting
/// twice.
public struct MessageKey: Hashable, Sendable {
    public static let lengthBytes = 1...128

    public let text: String

    /// Nil unless the text has 1 to 128 bytes. What the bytes are is the caller's affair; keys are compared byte by byte
    /// by the database, so two spellings of a composed letter are two keys.
    public init?(_ text: String) {
        guard MessageKey.lengthBytes.contains(text.utf8.count) else { return nil }
        self.text = text
    }

    public static func == (lhs: MessageKey, rhs: MessageKey) -> Bool {
        lhs.text.utf8.elementsEqual(rhs.text.utf8)
    }

    public func hash(into hasher: inout Hasher) {
        for byte in text.utf8 { hasher.combine(byte) }
    }
}
