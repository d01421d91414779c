import NIOCore
import Testing
import Usage

@testable import LineProtocol

@Suite("Messages of subscriptions")
struct ChannelMessageTests {
    private let name = "usage:" + userText

    private func encoded(_ message: ChannelMessage, version: Int) -> String {
        var buffer = ByteBuffer()
        message.encode(into: &buffer, version: version)
        return String(buffer: buffer)
    }

    @Test("Confirmations have Redis's form: an array, or a push in RESP3")
    func confirmations() {
        #expect(
            encoded(.subscribed(channel: name, count: 2), version: 2)
                == "*3\r\n$9\r\nsubscribe\r\n$42\r\n\(name)\r\n:2\r\n"
        )
        #expect(
            encoded(.subscribed(channel: name, count: 2), version: 3)
                == ">3\r\n$9\r\nsubscribe\r\n$42\r\n\(name)\r\n:2\r\n"
        )
        #expect(
            encoded(.unsubscribed(channel: name, count: 0), version: 2)
                == "*3\r\n$11\r\nunsubscribe\r\n$42\r\n\(name)\r\n:0\r\n"
        )
        #expect(
            encoded(.unsubscribed(channel: nil, count: 0), version: 2)
                == "*3\r\n$11\r\nunsubscribe\r\n$-1\r\n:0\r\n"
        )
        #expect(
            encoded(.unsubscribed(channel: nil, count: 0), version: 3)
                == ">3\r\n$11\r\nunsubscribe\r\n_\r\n:0\r\n"
        )
    }

    @Test("A message's payload is the answer's line without its status, with its length in bytes", arguments: [2, 3])
    func payload(version: Int) {
        let answer = Example.trial.usage(of: user)
        var line = ByteBuffer()
        answer.encode(into: &line)
        let fields = String(String(buffer: line).dropFirst("+OK ".count).dropLast("\r\n".count))
        #expect(fields.hasPrefix("user=\(userText) plan=trial"))
        #expect(fields.utf8.count > fields.count, "the label's dash is not ASCII")
        #expect(
            encoded(.usage(channel: name, answer), version: version)
                == "\(version == 3 ? ">" : "*")3\r\n$7\r\nmessage\r\n$42\r\n\(name)\r\n$\(fields.utf8.count)\r\n\(fields)\r\n"
        )
    }

    @Test("A subscribed RESP2 connection's PONG is an array, with the text or an empty one")
    func pong() {
        var buffer = ByteBuffer()
        buffer.writeSubscribedPong(nil)
        buffer.writeSubscribedPong("héllo")
        #expect(String(buffer: buffer) == "*2\r\n$4\r\npong\r\n$0\r\n\r\n*2\r\n$4\r\npong\r\n$6\r\nhéllo\r\n")
    }
}
