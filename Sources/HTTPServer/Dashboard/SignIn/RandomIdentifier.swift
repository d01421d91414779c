import Crypto

/// Unguessable identifiers: 256 random bits as lower-case hexadecimal digits, which need no escaping in HTML, headers
/// and URLs.
enum RandomIdentifier {
    static let length = 64

    static func make() -> String {
        var generator = SystemRandomNumberGenerator()
        return hexadecimal((0..<length / 2).map { _ in UInt8.random(in: .min ... .max, using: &generator) })
    }

    static func isWellFormed(_ text: some StringProtocol) -> Bool {
        text.utf8.count == length
            && text.utf8.allSatisfy {
                (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0)
                    || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains($0)
            }
    }

    static func hexadecimal(_ bytes: some Sequence<UInt8>) -> String {
        let digits = Array("0123456789abcdef")
        return bytes.reduce(into: "") { text, byte in
            text.append(digits[Int(byte >> 4)])
            text.append(digits[Int(byte & 15)])
        }
    }
}
