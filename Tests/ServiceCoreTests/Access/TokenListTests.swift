import Crypto
import Engine
import LineProtocol
import Testing

@testable import ServiceCore

/// A live token of this text.
func liveToken(
    _ text: String,
    id: Int64 = 1,
    name: String = "backend",
    scopes: [String] = ["chat"],
    expiresAt: ContinuousClock.Instant? = nil
) -> LiveToken {
    let digest = Array(SHA256.hash(data: Array(text.utf8)))
    return LiveToken(id: id, name: name, scopes: scopes, digest: digest, expiresAt: expiresAt)
}

@Suite("The list of live tokens")
struct TokenListTests {
    private let many = TokenList((1...100).map { liveToken("token \($0)", id: $0, name: "name-\($0 % 10)") })

    private func find(_ text: String, name: String? = nil, in list: TokenList) -> Int64? {
        list.identity(of: Credentials(name: name, token: Secret(text)), at: .now)?.tokenID
    }

    @Test("finds each of many tokens, and no other")
    func finds() {
        for number in Int64(1)...100 { #expect(find("token \(number)", in: many) == number) }
        let long = String(repeating: "token 1", count: 90)
        for text in ["", "token", "token 0", "token 101", "token 1 ", "TOKEN 1", long] {
            #expect(find(text, in: many) == nil, "\(text)")
        }
        #expect(find("token 1", in: TokenList()) == nil)
    }

    @Test("finds none whose digest is wrong in any one byte")
    func everyByte() {
        let right = liveToken("right")
        for byte in right.digest.indices {
            for bit in 0..<8 {
                var wrong = right
                wrong.digest[byte] ^= 1 << bit
                #expect(find("right", in: TokenList([wrong])) == nil, "byte \(byte), bit \(bit)")
                #expect(find("right", in: TokenList([wrong, liveToken("right", id: 2)])) == 2)
            }
        }
    }

    @Test("compares a given name with the token's, and requires none")
    func names() {
        #expect(find("token 13", name: "name-3", in: many) == 13)
        #expect(find("token 13", name: "default", in: many) == 13)
        #expect(find("token 13", name: "name-4", in: many) == nil)
        #expect(find("token 13", name: "", in: many) == nil)
        #expect(find("token 13", name: "Name-3", in: many) == nil)
    }

    @Test("expires a token at its instant, not a moment later")
    func expiry() {
        let end = ContinuousClock.now + .seconds(60)
        let list = TokenList([liveToken("short", expiresAt: end)])
        let credentials = Credentials(name: nil, token: Secret("short"))
        #expect(list.identity(of: credentials, at: end - .nanoseconds(1)) != nil)
        #expect(list.identity(of: credentials, at: end) == nil)
    }

    @Test("grants the permissions of the scopes, and none for an unknown scope")
    func scopes() {
        let list = TokenList([liveToken("a", scopes: ["chat", "operator"]), liveToken("b", id: 2, scopes: ["root"])])
        #expect(list.identity(ofToken: 1)?.permissions == [.anonymous, .authenticated, .chat, .operator])
        #expect(list.identity(ofToken: 2)?.permissions == [.anonymous, .authenticated])
        #expect(list.identity(ofToken: 3) == nil)
    }
}
