import Testing
import Usage

@Suite("A user's id")
struct UserIDTests {
    @Test("is parsed in either case and written in lower case")
    func caseIsFolded() throws {
        let lower = "7f1c0a52-3a51-4a7e-9d55-0b6a3f1f7c11"
        let user = try #require(UserID(lower))
        #expect(user == UserID(high: 0x7f1c_0a52_3a51_4a7e, low: 0x9d55_0b6a_3f1f_7c11))
        #expect(UserID(lower.uppercased()) == user)
        #expect(UserID("7F1c0a52-3a51-4A7e-9d55-0B6a3f1f7C11") == user)
        #expect(user.description == lower)
    }

    @Test("equals the id parsed from its text, for any bits")
    func roundTrip() {
        for shift in 0..<64 {
            for user in [UserID(high: 1 << shift, low: 0), UserID(high: 0, low: 1 << shift)] {
                #expect(UserID(user.description) == user)
            }
        }
        #expect(UserID(high: 0, low: 0).description == "00000000-0000-0000-0000-000000000000")
        #expect(UserID(high: .max, low: .max).description == "ffffffff-ffff-ffff-ffff-ffffffffffff")
    }

    @Test(
        "is not parsed from other spellings",
        arguments: [
            "",
            "7f1c0a52-3a51-4a7e-9d55-0b6a3f1f7c1",
            "7f1c0a52-3a51-4a7e-9d55-0b6a3f1f7c111",
            "7f1c0a523a514a7e9d550b6a3f1f7c11",
            "7f1c0a523a514a7e9d550b6a3f1f7c110000",
            "{7f1c0a52-3a51-4a7e-9d55-0b6a3f1f7c1}",
            "urn:uuid:7f1c0a52-3a51-4a7e-9d55-0b6",
            "7f1c0a5-23a51-4a7e-9d55-0b6a3f1f7c11",
            "7f1c0a52-3a51-4a7e-9d550-b6a3f1f7c11",
            "7f1c0a52_3a51_4a7e_9d55_0b6a3f1f7c11",
            "7f1c0a52-3a51-4a7e-9d55-0b6a3f1f7c1g",
            "7f1c0a52-3a51-4a7e-9d55-0b6a3f1f7c1@",
            "7f1c0a52-3a51-4a7e-9d55-0b6a3f1f7c1`",
            "7f1c0a52-3a51-4a7e-9d55-0b6a3f1f7c1/",
            "7f1c0a52-3a51-4a7e-9d55-0b6a3f1f7c1:",
            " 7f1c0a52-3a51-4a7e-9d55-0b6a3f1f7c1",
            "7f1c0a52-3a51-4a7e-9d55-0b6a3f1f7c1\n",
            "7f1c0a52-3a51-4a7e-9d55-0b6a3f1f7cé",
        ]
    )
    func rejection(text: String) { #expect(UserID(text) == nil) }

    @Test("has hexadecimal digits and dashes at fixed positions")
    func eachByte() {
        let text = Array("7f1c0a52-3a51-4a7e-9d55-0b6a3f1f7c11".utf8)
        for position in text.indices {
            for byte in UInt8.min...UInt8.max {
                var changed = text
                changed[position] = byte
                let isTaken: Bool =
                    switch byte {
                    case UInt8(ascii: "-"): text[position] == byte
                    case UInt8(ascii: "0")...UInt8(ascii: "9"): text[position] != UInt8(ascii: "-")
                    case UInt8(ascii: "a")...UInt8(ascii: "f"): text[position] != UInt8(ascii: "-")
                    case UInt8(ascii: "A")...UInt8(ascii: "F"): text[position] != UInt8(ascii: "-")
                    default: false
                    }
                let user = changed.withUnsafeBytes { UserID($0) }
                #expect((user != nil) == isTaken, "byte \(byte) at \(position)")
                guard let user else { continue }
                #expect(user.description == String(decoding: changed, as: UTF8.self).lowercased())
            }
        }
    }

    @Test("sorts byte by byte, as PostgreSQL sorts uuid")
    func order() {
        let sorted = [
            UserID(high: 0, low: 0),
            UserID(high: 0, low: 1),
            UserID(high: 0, low: 0x7fff_ffff_ffff_ffff),
            UserID(high: 0, low: 0x8000_0000_0000_0000),
            UserID(high: 1, low: 0),
            UserID(high: 0x7fff_ffff_ffff_ffff, low: .max),
            UserID(high: 0x8000_0000_0000_0000, low: 0),
            UserID(high: .max, low: .max),
        ]
        #expect(Array(sorted.reversed()).sorted() == sorted)
        #expect(sorted.map(\.description).sorted() == sorted.map(\.description))
        #expect(!(sorted[3] < sorted[3]))
    }
}
