import Testing
import Usage

@testable import LineProtocol

private let inGerman = SentenceOptions(language: LanguageTag("de"))

@Suite("Encoded requests")
struct CommandEncodingTests {
    @Test("with a line end in the key stay one request, which is refused")
    func noSecondRequest() throws {
        let key = try MessageKey("a\r\nFORGET \(userText)\r\n")
        let german = Command.release(user: user, key: key).answered(with: inGerman)
        for command in [Command.consume(user: user, messages: 1, key: key), .commit(user: user, key: key), german] {
            #expect(decode(encoded(command)).map(\.code) == [.badArg])
        }
    }

    @Test("are lines for the verbs of each message")
    func plainLine() throws {
        let key: MessageKey = "k"
        let request = encoded(.consume(user: user, messages: 1, key: key))
        #expect(String(decoding: request, as: UTF8.self) == "CONSUME \(userText) key=k\r\n")
        let hold = encoded(.reserve(user: user, messages: 2, key: key, ttlSeconds: 9))
        #expect(String(decoding: hold, as: UTF8.self) == "RESERVE \(userText) 2 key=k ttl=9\r\n")
        let german = Command.consume(user: user, messages: 1, key: key).answered(with: inGerman)
        #expect(String(decoding: encoded(german), as: UTF8.self) == "CONSUME \(userText) key=k lang=de\r\n")
        var both = SentenceOptions(language: LanguageTag("pt-BR"))
        both.timeZone = CivilTimeZone("America/Argentina/ComodRivadavia")
        let longest = Command.consume(user: user, messages: 1, key: key).answered(with: both)
        let expected = "CONSUME \(userText) key=k lang=pt-BR tz=America/Argentina/ComodRivadavia\r\n"
        #expect(String(decoding: encoded(longest), as: UTF8.self) == expected)
        let other = Command.forget(user: user).answered(with: inGerman)
        #expect(String(decoding: encoded(other), as: UTF8.self) == "FORGET \(userText)\r\n")
        for (messages, text) in [(nil, ""), (0, " 0"), (1, " 1"), (2, " 2")] {
            let commit = encoded(.commit(user: user, messages: messages, key: key))
            #expect(String(decoding: commit, as: UTF8.self) == "COMMIT \(userText)\(text) key=k\r\n")
        }
    }
}
