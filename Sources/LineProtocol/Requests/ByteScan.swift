/// Scans eight bytes at a time, with Mycroft's test for a zero byte: a subtraction borrows into the top bit of each
/// matching byte. The borrow may also reach the byte above a match, but never occurs without a match.
extension UnsafeRawBufferPointer {
    private static var ones: UInt64 { 0x0101_0101_0101_0101 }
    private static var tops: UInt64 { 0x8080_8080_8080_8080 }

    /// Returns the position of the first `byte` at or after `start`, or nil.
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

    /// Whether every byte is in 0x20 to 0x7E.
    var isPrintableASCII: Bool {
        var position = 0
        while count - position >= 8 {
            guard Self.arePrintable(loadUnaligned(fromByteOffset: position, as: UInt64.self)) else { return false }
            position += 8
        }
        return Self.arePrintable(tail(from: position))
    }

    /// Whether no byte is below `lowest`, and none is a double quote, a backslash or DEL.
    func isPlain(from lowest: UInt8) -> Bool {
        var position = 0
        while count - position >= 8 {
            let word = loadUnaligned(fromByteOffset: position, as: UInt64.self)
            guard Self.arePlain(word, from: lowest) else { return false }
            position += 8
        }
        return Self.arePlain(tail(from: position), from: lowest)
    }

    private static func arePrintable(_ word: UInt64) -> Bool {
        (word | below(0x20, word) | equal(0x7F, word)) & tops == 0
    }

    private static func arePlain(_ word: UInt64, from lowest: UInt8) -> Bool {
        let special = equal(UInt8(ascii: "\""), word) | equal(UInt8(ascii: "\\"), word) | equal(0x7F, word)
        return (below(lowest, word) | special) & tops == 0
    }

    /// Sets at least the top bit of the lowest byte that is less than `byte`.
    private static func below(_ byte: UInt8, _ word: UInt64) -> UInt64 {
        (word &- ones &* UInt64(byte)) & ~word
    }

    /// Sets at least the top bit of the lowest byte that equals `byte`.
    private static func equal(_ byte: UInt8, _ word: UInt64) -> UInt64 {
        let difference = word ^ (ones &* UInt64(byte))
        return (difference &- ones) & ~difference
    }

    /// Returns the bytes from `position` on, at most seven, padded to a word with letters.
    private func tail(from position: Int) -> UInt64 {
        let bytes = count - position
        let filler: UInt64 = 0x4141_4141_4141_4141
        if bytes == 0 { return filler }
        // The two loads may overlap; both have read the same bytes there.
        var word: UInt64
        if bytes >= 4 {
            let last = UInt64(loadUnaligned(fromByteOffset: count - 4, as: UInt32.self).littleEndian)
            word = UInt64(loadUnaligned(fromByteOffset: position, as: UInt32.self).littleEndian)
            word |= last << UInt64(8 * (bytes - 4))
        } else if bytes >= 2 {
            let last = UInt64(loadUnaligned(fromByteOffset: count - 2, as: UInt16.self).littleEndian)
            word = UInt64(loadUnaligned(fromByteOffset: position, as: UInt16.self).littleEndian)
            word |= last << UInt64(8 * (bytes - 2))
        } else {
            word = UInt64(self[position])
        }
        return word | filler << UInt64(8 * bytes)
    }
}
