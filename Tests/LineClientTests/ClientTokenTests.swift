import Testing

@testable import LineClient

@Suite("A client's token")
struct ClientTokenTests {
    @Test("is one word, with or without a line end")
    func words() throws {
        for text in ["headroom_abc", "headroom_abc\n", "headroom_abc\r\n"] {
            #expect(try ClientToken(text).secret == "headroom_abc")
        }
        #expect(try ClientToken(String(repeating: "x", count: 256)).secret.count == 256)
    }

    @Test(
        "is nothing else",
        arguments: [
            "", "\n", " ", "two words", "a\tb", "a\n\n", "a\nb", "é", "a\u{7F}", String(repeating: "x", count: 257),
        ]
    )
    func malformed(text: String) { #expect(throws: ClientToken.Malformed.self) { try ClientToken(text) } }

    @Test("is not shown by printing or dumping it, or a value that contains it")
    func secrecy() throws {
        let token = try ClientToken("headroom_secret")
        var dumped = ""
        dump(ClientAccess(tls: nil, token: token), to: &dumped)
        for shown in ["\(token)", String(reflecting: token), "\(ClientAccess(token: token))", dumped] {
            #expect(!shown.contains("secret"), "\(shown)")
        }
    }
}
