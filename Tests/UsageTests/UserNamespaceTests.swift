import Testing

@testable import Usage

@Suite("The namespace of users' names")
struct UserNamespaceTests {
    /// The namespace of DNS names in RFC 9562, appendix C.
    private let namespace = UserNamespace(UserID("6ba7b810-9dad-11d1-80b4-00c04fd430c8")!)

    @Test(
        "gives the UUIDs of version 5",
        arguments: [
            // RFC 9562, appendix A.4; the others by Python's uuid.uuid5.
            ("www.example.com", "2ed6657d-e927-568b-95e1-2665a8aea6a2"),
            ("python.org", "886313e1-3b8a-5372-9b90-0c9aee199e5d"),
        ]
    )
    func version5(name: String, uuid: String) {
        #expect(UserID(name, in: namespace) == UserID(uuid))
        #expect(UserID(name, in: nil) == nil)
    }

    @Test("leaves a UUID as it is")
    func uuid() {
        let uuid = "7F1C0A52-3a51-4a7e-9d55-0b6a3f1f7c11"
        #expect(UserID(uuid, in: namespace) == UserID(uuid))
        #expect(UserID("7f1c0a523a514a7e9d550b6a3f1f7c11", in: namespace) != UserID(uuid))
    }

    @Test(
        "has no names with spaces or control characters, and none that are empty, too long, or dots of a URL's path",
        arguments: [
            "", ".", "..", " ", "a b", "a\tb", "a\u{0}", "a\u{7F}", "a\u{80}", "a\u{9F}b",
            String(repeating: "x", count: 256), String(repeating: "é", count: 128),
        ]
    )
    func noName(name: String) {
        #expect(UserID(name, in: namespace) == nil)
        #expect(!UserNamespace.isName(name))
    }

    @Test(
        "has names beyond ASCII",
        arguments: ["...", ".a", "-", "\u{A0}", "é", "名前", "\u{2028}", String(repeating: "é", count: 127) + "x"]
    )
    func name(name: String) { #expect(UserID(name, in: namespace) != nil) }
}

@Suite("SHA-1")
struct SHA1Tests {
    private func digest(_ bytes: [UInt8]) -> String {
        var hash = SHA1()
        bytes.withUnsafeBytes { hash.update($0) }
        let words = hash.finalize()
        return [words.0, words.1, words.2, words.3, words.4].map {
            let digits = String($0, radix: 16)
            return String(repeating: "0", count: 8 - digits.count) + digits
        }.joined()
    }

    @Test("has the digests of RFC 3174")
    func vectors() {
        #expect(digest(Array("abc".utf8)) == "a9993e364706816aba3e25717850c26c9cd0d89d")
        #expect(
            digest(Array("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq".utf8))
                == "84983e441c3bd26ebaae4aa1f95129e5e54670f1"
        )
        let million = [UInt8](repeating: UInt8(ascii: "a"), count: 1_000_000)
        #expect(digest(million) == "34aa973cd4c4daa4f61eeb2bdbad27316534016f")
        #expect(digest([]) == "da39a3ee5e6b4b0d3255bfef95601890afd80709")
    }
}
