import Crypto
import TestSupport
import Testing
import Usage

@Suite("A message's key")
struct MessageKeyTests {
    @Test("is a text or literal of 1 to 128 bytes")
    func texts() throws {
        let literal: MessageKey = "message 4711"
        #expect(try MessageKey("message \(4711)") == literal)
        for count in [1, 127, 128] {
            #expect(try MessageKey(String(repeating: "k", count: count)).text.utf8.count == count)
        }
        // Bytes count, not characters.
        #expect(try MessageKey(String(repeating: "é", count: 64)).text.utf8.count == 128)
    }

    @Test(
        "of another length is an error with the length and advice, and without the text",
        arguments: [("", 0), (String(repeating: "k", count: 129), 129), (String(repeating: "é", count: 65), 130)]
    )
    func refused(text: String, lengthBytes: Int) throws {
        let error = try #require(throws: InvalidMessageKey.self) { try MessageKey(text) }
        #expect(error.lengthBytes == lengthBytes)
        #expect(error.description.contains("key") && (text.isEmpty || !error.description.contains(text)))
        #expect(error.description.contains("MessageKey(digestOf:)") == (lengthBytes > 128))
    }

    @Test("of an id of any length is its digest")
    func digests() throws {
        // The digests of FIPS 180-4's examples.
        #expect(
            try MessageKey(digestOf: "abc")
                == "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        )
        #expect(
            try MessageKey(digestOf: "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")
                == "sha256:248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
        )
        #expect(throws: InvalidMessageKey.self) { try MessageKey(digestOf: "") }
    }

    @Test("has the digest of swift-crypto, around block sizes and for random lengths", arguments: SeededGenerator.seeds)
    func sameAsCrypto(seed: UInt64) throws {
        print("seed \(seed)")
        var generator = SeededGenerator(seed: seed)
        let lengths = Array(1...200) + (0..<20).map { _ in Int.random(in: 200...20_000, using: &generator) }
        for length in lengths {
            let bytes = (0..<length).map { _ in UInt8.random(in: 0...127, using: &generator) }
            let id = String(decoding: bytes, as: UTF8.self)
            let digest = SHA256.hash(data: Array(id.utf8))
                .map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
            #expect(try MessageKey(digestOf: id).text == "sha256:\(digest)", "seed \(seed), \(length) bytes")
        }
    }
}
