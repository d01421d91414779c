/// A user of the chat product: a UUID, and the only personal datum that Headroom knows.
///
/// Kept as two big-endian halves so that `<` is the order of PostgreSQL's `uuid` type (byte by byte). Every batch,
/// reset and webhook takes its row locks in that one order, or two instances would deadlock.
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
    /// Length of the text form, `8-4-4-4-12` hexadecimal digits.
    public static var textLength: Int { 36 }

    /// Parses the text form, in either case. Anything else, including braces, `urn:` and missing dashes, is nil:
    /// PostgreSQL would take those, but two spellings of a user must not look like two users in a log.
    @inlinable
    public init?(_ text: some Collection<UInt8>) {
        guard text.count == UserID.textLength else { return nil }
        var high: UInt64 = 0
        var low: UInt64 = 0
        var position = 0
        var digits = 0
        for byte in text {
            switch position {
            case 8, 13, 18, 23:
                guard byte == UInt8(ascii: "-") else { return nil }
            default:
                guard let digit = UserID.hexadecimal(byte) else { return nil }
                if digits < 16 {
                    high = high << 4 | digit
                } else {
                    low = low << 4 | digit
                }
                digits += 1
            }
            position += 1
        }
        self.init(high: high, low: low)
    }

    public init?(_ text: String) {
        self.init(text.utf8)
    }

    @inlinable
    static func hexadecimal(_ byte: UInt8) -> UInt64? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt64(byte - UInt8(ascii: "0"))
        case UInt8(ascii: "a")...UInt8(ascii: "f"): UInt64(byte - UInt8(ascii: "a") + 10)
        case UInt8(ascii: "A")...UInt8(ascii: "F"): UInt64(byte - UInt8(ascii: "A") + 10)
        default: nil
        }
    }

    /// Calls `body` with each byte of the lower-case text form, in order.
    @inlinable
    public func forEachTextByte(_ body: (UInt8) -> Void) {
        var digits = 0
        for position in 0..<UserID.textLength {
            switch position {
            case 8, 13, 18, 23:
                body(UInt8(ascii: "-"))
            default:
                let half = digits < 16 ? high : low
                let digit = UInt8(truncatingIfNeeded: half >> UInt64(60 - 4 * (digits & 15))) & 15
                body(digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10)
                digits += 1
            }
        }
    }
}

extension UserID: CustomStringConvertible {
    public var description: String {
        String(unsafeUninitializedCapacity: UserID.textLength) { text in
            var index = 0
            forEachTextByte { byte in
                text[index] = byte
                index += 1
            }
            return UserID.textLength
        }
    }
}
