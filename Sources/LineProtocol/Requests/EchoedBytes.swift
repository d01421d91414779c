/// Bytes that come back as they were received. In an array they may be any bytes, as Redis's are.
public struct EchoedBytes: Sendable, Equatable, ExpressibleByStringLiteral {
    public let bytes: [UInt8]

    public init(_ bytes: some Sequence<UInt8>) {
        self.bytes = Array(bytes)
    }

    public init(_ text: String) {
        self.init(text.utf8)
    }

    public init(stringLiteral text: String) {
        self.init(text)
    }

    /// The bytes as text, for those that are one.
    public var text: String { String(decoding: bytes, as: UTF8.self) }
}
