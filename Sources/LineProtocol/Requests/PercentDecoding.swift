import Usage

/// Decodes the percent-encoded texts of URLs and forms (RFC 3986, 2.1), byte for byte: a name in a URL must be the same
/// user as these bytes in a line. Foundation's decoder drops U+FEFF at the beginning, and others replace bytes that are
/// not UTF-8, so that two names would be one user.
package enum PercentDecoding {
    /// - Parameter plusIsSpace: whether a plus sign means a space, as in forms.
    /// - Returns: nil if the text is malformed or not UTF-8, or if it has U+0000, which no text of PostgreSQL has.
    package static func text(_ encoded: some Sequence<UInt8>, plusIsSpace: Bool = false) -> String? {
        var bytes: [UInt8] = []
        // `plain` has the last three bytes if they were not encoded.
        var plain: UInt32 = 0
        var iterator = encoded.makeIterator()
        while var byte = iterator.next() {
            plain = plain << 8 & 0xFF_FFFF | UInt32(byte)
            // HTTP libraries put U+FFFD in place of bytes that are not UTF-8.
            guard plain != 0xEF_BFBD else { return nil }
            if byte == UInt8(ascii: "%") {
                guard let high = iterator.next().flatMap(digit), let low = iterator.next().flatMap(digit) else {
                    return nil
                }
                byte = high << 4 | low
            } else if plusIsSpace, byte == UInt8(ascii: "+") {
                byte = UInt8(ascii: " ")
            }
            guard byte != 0 else { return nil }
            bytes.append(byte)
        }
        return String(validating: bytes, as: UTF8.self)
    }

    private static func digit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}

extension UserID {
    /// Parses a user's name in a URL.
    package init?(percentEncoded text: String, in namespace: UserNamespace?) {
        // The text is nearly always a UUID, which has nothing to decode.
        guard let user = UserID(text) ?? PercentDecoding.text(text.utf8).flatMap({ UserID($0, in: namespace) }) else {
            return nil
        }
        self = user
    }
}
