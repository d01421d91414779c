/// Scans of eight bytes at a time. A byte of the word is found by letting it, and it alone, borrow into its own top
/// bit; as in Mycroft's test for a zero byte, a borrow can also reach the byte above a match, never without a match.
extension UnsafeRawBufferPointer {
    private static var ones: UInt64 { 0x0101_0101_0101_0101 }
    private static var tops: UInt64 { 0x8080_8080_8080_8080 }

    /// Position of the first `byte` at or after `start`, or nil.
    func firstPosition(of byte: UInt8, from start: Int = 0) -> Int? {
        let pattern = Self.ones &* UInt64(byte)
        var position = start
        while count - position >= 8 {
            let difference = loadUnaligned(fromByteOffset: position, as: UInt64.self) ^ pattern
            if (difference &- Self.ones) & ~difference & Self.tops != 0 { break }
            position += 8
        }
        while position < count {
            if self[position] == byte { return position }
            position += 1
        }
        return nil
    }

    /// Every byte is in 0x20 to 0x7E.
    var isPrintableASCII: Bool {
        var position = 0
        while count - position >= 8 {
            let word = loadUnaligned(fromByteOffset: position, as: UInt64.self)
            let delete = word ^ (Self.ones &* 0x7F)
            let below = (word &- Self.ones &* 0x20) & ~word
            if (word | below | ((delete &- Self.ones) & ~delete)) & Self.tops != 0 { return false }
            position += 8
        }
        while position < count {
            guard (0x20...0x7E).contains(self[position]) else { return false }
            position += 1
        }
        return true
    }

    /// No byte is below `lowest`, and none is a double quote, a backslash or DEL.
    func isPlain(from lowest: UInt8) -> Bool {
        var position = 0
        while count - position >= 8 {
            let word = loadUnaligned(fromByteOffset: position, as: UInt64.self)
            let quote = word ^ (Self.ones &* UInt64(UInt8(ascii: "\"")))
            let backslash = word ^ (Self.ones &* UInt64(UInt8(ascii: "\\")))
            let delete = word ^ (Self.ones &* 0x7F)
            let below = (word &- Self.ones &* UInt64(lowest)) & ~word
            let special =
                (quote &- Self.ones) & ~quote | (backslash &- Self.ones) & ~backslash | (delete &- Self.ones) & ~delete
            if (below | special) & Self.tops != 0 { return false }
            position += 8
        }
        while position < count {
            switch self[position] {
            case ..<lowest, UInt8(ascii: "\""), UInt8(ascii: "\\"), 0x7F: return false
            default: position += 1
            }
        }
        return true
    }
}
