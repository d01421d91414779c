import Testing

@testable import LineProtocol

@Suite("A packed name")
struct PackedNameTests {
    private func packed(_ bytes: [UInt8]) -> PackedName? { bytes.withUnsafeBytes { PackedName($0) } }

    @Test("has 1 to 16 letters or underscores, each byte judged alike wherever it stands", arguments: 1...17)
    func bytes(length: Int) {
        for filler in [UInt8(ascii: "A"), UInt8(ascii: "z"), UInt8(ascii: "_")] {
            for position in 0..<length {
                for byte in UInt8.min...UInt8.max {
                    var bytes = [UInt8](repeating: filler, count: length)
                    bytes[position] = byte
                    let isLetter = Unicode.Scalar(byte).properties.isAlphabetic && byte < 0x80
                    let isName = length <= 16 && (isLetter || byte == UInt8(ascii: "_"))
                    #expect((packed(bytes) != nil) == isName, "byte \(byte) at \(position)")
                }
            }
        }
        #expect(packed([]) == nil)
    }

    @Test("is equal to another of the same letters in any case, and to no other")
    func equality() {
        let names = ["A", "_", "AA", "A_", "ABCDEFG", "ABCDEFGH", "ABCDEFGHA", "ABCDEFGHIJKLMNO", "ABCDEFGHIJKLMNOP"]
        for name in names {
            for other in names {
                #expect((packed(Array(name.utf8)) == packed(Array(other.lowercased().utf8))) == (name == other))
            }
        }
    }
}
