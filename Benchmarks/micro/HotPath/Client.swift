import LineProtocol
import NIOCore
import Usage

/// The cost of a call of the library in the code shared with the service; `script/bench-client` measures the rest.
extension BenchmarkCase {
    private static let answer =
        "+ALLOWED user=7f1c0a52-3a51-4a7e-9d55-0b6a3f1f7c11 plan=paid state=active tier=silent display=hidden used=17"
        + " limit=800 remaining=783 period=2026-11 resets=2026-12-01T00:00:00Z\r\n"

    static let client = [
        BenchmarkCase("client, write CONSUME with key") {
            let user = UserID(high: 0x7f1c_0a52_3a51_4a7e, low: 0x9d55_0b6a_3f1f_7c11)
            let command = Command.consume(user: user, messages: 1, key: "Q7mX0bB4tZpK9aR")
            var buffer = ByteBuffer()
            buffer.reserveCapacity(2_048)
            return {
                buffer.clear()
                command.encode(into: &buffer)
                keep(buffer)
            }
        },
        read("client, read an answer", answers: 1),
        read("client, read 16 answers in one buffer", answers: 16),
    ]

    private static func read(_ name: String, answers: Int) -> BenchmarkCase {
        BenchmarkCase(name, requests: answers) {
            let received = ByteBuffer(string: String(repeating: answer, count: answers))
            var decoder = ReplyFrameDecoder()
            return {
                var buffer = received
                var read = 0
                while let frame = try? decoder.next(in: &buffer) {
                    keep(try? ReceivedReply(frame))
                    read += 1
                }
                precondition(read == answers)
            }
        }
    }
}
