/// A user of the chat product: a UUID, the only personal datum that Headroom stores.
///
/// The two halves are big-endian, so that `<` is the order of PostgreSQL's `uuid` type (byte by byte). All batches,
/// resets and webhooks lock rows in this order, so that two instances cannot deadlock.
public struct UserID: Hashable, Sendable, Comparable {
    public let high: UInt64
    public let low: UInt64

    @inlinable
    public init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    public static func < (lhs: UserID, rhs: UserID) -> Bool {
        lhs.high != rhs.high ? lhs.high < rhs.high : lhs.low < rhs.low
    }
}

extension UserID {
    /// The length of the text form, `8-4-4-4-12` hexadecimal digits.
    public static var textLength: Int { 36 }

    /// Parses the text form, in either case. It is nil for other spellings that PostgreSQL accepts, such as braces,
    /// `urn:` and missing dashes, because they would look like another user in a log.
    public init?(_ text: UnsafeRawBufferPointer) {
        guard text.count == UserID.textLength else { return nil }
        let dash = UInt8(ascii: "-")
        guard text[8] == dash, text[13] == dash, text[18] == dash, text[23] == dash,
            let bits = HexadecimalDigits.bits(
                of: HexadecimalDigits.Words(
                    text.eight(at: 0),
                    text.four(at: 9) << 32 | text.four(at: 14),
                    text.four(at: 19) << 32 | text.four(at: 24),
                    text.eight(at: 28)
                )
            )
        else { return nil }
        self.init(high: bits[0] << 32 | bits[1], low: bits[2] << 32 | bits[3])
    }

    public init?(_ text: String) {
        var text = text
        guard let user = text.withUTF8({ UserID(UnsafeRawBufferPointer($0)) }) else { return nil }
        self = user
    }

    /// Writes the lower-case text form to the beginning of `text`, which must have at least `textLength` bytes.
    public func writeText(to text: UnsafeMutableRawBufferPointer) {
        precondition(text.count >= UserID.textLength, "the buffer is too small for a user id")
        let digits = HexadecimalDigits.text(
            of: HexadecimalDigits.Words(high >> 32, high & 0xFFFF_FFFF, low >> 32, low & 0xFFFF_FFFF)
        )
        text.put(eight: digits[0], at: 0)
        text.put(four: digits[1] >> 32, at: 9)
        text.put(four: digits[1], at: 14)
        text.put(four: digits[2] >> 32, at: 19)
        text.put(four: digits[2], at: 24)
        text.put(eight: digits[3], at: 28)
        let dash = UInt8(ascii: "-")
        (text[8], text[13], text[18], text[23]) = (dash, dash, dash, dash)
    }
}

extension UserID: CustomStringConvertible {
    public var description: String {
        String(unsafeUninitializedCapacity: UserID.textLength) { text in
            writeText(to: UnsafeMutableRawBufferPointer(text))
            return UserID.textLength
        }
    }
}

extension UnsafeRawBufferPointer {
    /// Reads eight bytes as a big-endian number.
    fileprivate func eight(at position: Int) -> UInt64 {
        UInt64(bigEndian: loadUnaligned(fromByteOffset: position, as: UInt64.self))
    }

    fileprivate func four(at position: Int) -> UInt64 {
        UInt64(UInt32(bigEndian: loadUnaligned(fromByteOffset: position, as: UInt32.self)))
    }
}

extension UnsafeMutableRawBufferPointer {
    fileprivate func put(eight bytes: UInt64, at position: Int) {
        storeBytes(of: bytes.bigEndian, toByteOffset: position, as: UInt64.self)
    }

    /// Writes the lower four bytes of `bytes`.
    fileprivate func put(four bytes: UInt64, at position: Int) {
        storeBytes(of: UInt32(truncatingIfNeeded: bytes).bigEndian, toByteOffset: position, as: UInt32.self)
    }
}
