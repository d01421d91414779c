import LineProtocol
import NIOCore
import Usage

/// The same bytes as a user's name are the same user in a line and in a URL, or nobody's name in both.
///
/// The input: a byte that chooses which bytes of the URL are percent-encoded, the name.
enum NameTarget {
    private static let namespace = UserNamespace(UserID(high: 0x0b1f_2c3d_4e5f_4a6b, low: 0x8c7d_9e0f_1a2b_3c4d))

    @Sendable
    static func check(_ input: [UInt8]) throws(Violation) {
        var decisions = FuzzInput(input)
        let choice = decisions.byte()
        let name = decisions.remainder
        // In a line, a name cannot begin as an option does, in either case (docs/user-ids.md).
        let lowered = name.map { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) ? $0 | 0x20 : $0 }
        if OptionName.allCases.contains(where: { lowered.starts(with: "\($0.rawValue)=".utf8) }) { return }
        let expected = userInLine(name)
        try requireEqual(user(inURL: encoded(name) { _ in true }), expected, "all bytes encoded")
        if let query = PercentDecoding.text(encoded(name) { _ in true }, plusIsSpace: true) {
            try require(query.utf8.elementsEqual(name), "a form has other bytes")
        }
        guard !name.contains(UInt8(ascii: "%")) else { return }
        let mixed = encoded(name) { index in choice >> UInt8(index % 8) & 1 == 1 }
        // Refused where a library may have put U+FFFD in place of bytes that are not UTF-8.
        let isUnclear = String(decoding: mixed, as: UTF8.self).unicodeScalars.contains("\u{FFFD}")
        try requireEqual(user(inURL: mixed), isUnclear ? nil : expected, "some bytes encoded")
    }

    /// Libraries make a text of a URL.
    private static func user(inURL text: [UInt8]) -> UserID? {
        UserID(percentEncoded: String(decoding: text, as: UTF8.self), in: namespace)
    }

    private static func userInLine(_ name: [UInt8]) -> UserID? {
        var decoder = RequestDecoder(limits: RequestLimits(), namespace: namespace)
        decoder.permit(.all, within: RequestLimits())
        var buffer = ByteBuffer(string: "*2\r\n$7\r\nCONSUME\r\n$\(name.count)\r\n")
        buffer.writeBytes(name + Array("\r\n".utf8))
        guard case .command(.consume(let user, _, _))? = decoder.next(&buffer) else { return nil }
        return user
    }

    private static func encoded(_ bytes: [UInt8], where isEncoded: (Int) -> Bool) -> [UInt8] {
        let digits = Array("0123456789aBcDeF".utf8)
        return bytes.indices.flatMap { index in
            let byte = bytes[index]
            return isEncoded(index) ? [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]] : [byte]
        }
    }
}
