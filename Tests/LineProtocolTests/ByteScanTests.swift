import Testing

@testable import LineProtocol

@Suite("Scans of eight bytes at a time")
struct ByteScanTests {
    @Test("A byte is printable or not at any position", arguments: [7, 8, 9, 16, 19])
    func printable(length: Int) {
        // Also next to the lowest and the highest printable byte, because a borrow could reach the next byte.
        for filler in [UInt8(ascii: " "), UInt8(ascii: "A"), UInt8(ascii: "~")] {
            for position in 0..<length {
                for byte in UInt8.min...UInt8.max {
                    var bytes = [UInt8](repeating: filler, count: length)
                    bytes[position] = byte
                    let isPrintable = bytes.withUnsafeBytes { $0.isPrintableASCII }
                    #expect(isPrintable == (0x20...0x7E).contains(byte), "byte \(byte) at \(position)")
                }
            }
        }
    }

    @Test("Only bytes that need quotes or an escape are not plain, at any position", arguments: [7, 8, 9, 16, 19])
    func plain(length: Int) {
        for filler in [UInt8(ascii: "!"), UInt8(ascii: "#"), UInt8(ascii: "]"), UInt8(ascii: "~"), 0xC3] {
            for position in 0..<length {
                for byte in UInt8.min...UInt8.max {
                    var bytes = [UInt8](repeating: filler, count: length)
                    bytes[position] = byte
                    let isSpecial = [UInt8(ascii: "\""), UInt8(ascii: "\\"), 0x7F].contains(byte)
                    for lowest in [UInt8(ascii: " "), UInt8(ascii: "!")] {
                        let isPlain = bytes.withUnsafeBytes { $0.isPlain(from: lowest) }
                        #expect(isPlain == (byte >= lowest && !isSpecial), "byte \(byte) at \(position)")
                    }
                }
            }
        }
    }

    @Test("The first of several equal bytes is found, whatever is next to it", arguments: [1, 7, 8, 9, 16, 19])
    func position(length: Int) {
        for filler in [UInt8(0x00), 0x09, 0x0B, 0x8A, 0xFF] {
            for first in 0...length {
                var bytes = [UInt8](repeating: filler, count: length)
                for position in first..<length where (position - first) % 3 == 0 { bytes[position] = 0x0A }
                for start in 0...first {
                    let found = bytes.withUnsafeBytes { $0.firstPosition(of: 0x0A, from: start) }
                    #expect(found == (first < length ? first : nil), "first \(first), start \(start)")
                }
            }
        }
    }
}
