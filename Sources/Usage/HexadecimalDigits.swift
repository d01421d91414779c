/// Reads and writes hexadecimal digits, eight digits per word and four words at a time. Ids are a large part of the
/// cost of a request; byte by byte they would cost many times as much.
enum HexadecimalDigits {
    typealias Words = SIMD4<UInt64>

    private static var ones: UInt64 { 0x0101_0101_0101_0101 }
    private static var tops: UInt64 { 0x8080_8080_8080_8080 }

    /// Returns the 32 bits of each word's eight digits, in either case, with the first digit in the top byte. Nil if a
    /// byte is no digit.
    @inline(__always)
    static func bits(of text: Words) -> Words? {
        // Each sum sets the top bit of the bytes that are at least the character. Bytes from 0x80 on may carry into the
        // next byte, but they are faults themselves.
        let isDigit = atLeast("0", text) & ~atLeast(":", text)
        let lower = text | Words(repeating: ones &* 0x20)
        let isLetter = atLeast("a", lower) & ~atLeast("g", lower)
        let faults = (text | ~(isDigit | isLetter)) & Words(repeating: tops)
        guard faults[0] | faults[1] | faults[2] | faults[3] == 0 else { return nil }
        // The low half of a letter is 1 to 6, and its value 9 more. Only letters have the bit 0x40.
        let letters = text &>> 6 & Words(repeating: ones)
        var bits = (text & Words(repeating: ones &* 0x0F)) &+ letters &+ letters &<< 3
        bits = (bits | bits &>> 4) & Words(repeating: 0x00FF_00FF_00FF_00FF)
        bits = (bits | bits &>> 8) & Words(repeating: 0x0000_FFFF_0000_FFFF)
        return (bits | bits &>> 16) & Words(repeating: 0xFFFF_FFFF)
    }

    /// Returns the eight lower-case digits of each word's 32 bits, with the first digit from the top byte.
    @inline(__always)
    static func text(of bits: Words) -> Words {
        var digits = (bits | bits &<< 16) & Words(repeating: 0x0000_FFFF_0000_FFFF)
        digits = (digits | digits &<< 8) & Words(repeating: 0x00FF_00FF_00FF_00FF)
        digits = (digits | digits &<< 4) & Words(repeating: ones &* 0x0F)
        // Values from ten on plus six have the bit 0x10. Letters are 39 characters after the digits.
        let letters = (digits &+ Words(repeating: ones &* 6)) &>> 4 & Words(repeating: ones)
        let distance = letters &+ letters &<< 1 &+ letters &<< 2 &+ letters &<< 5
        return digits &+ Words(repeating: ones &* 0x30) &+ distance
    }

    @inline(__always)
    private static func atLeast(_ character: Unicode.Scalar, _ text: Words) -> Words {
        text &+ Words(repeating: ones &* (0x80 - UInt64(UInt8(ascii: character))))
    }
}
