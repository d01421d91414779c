import NIOCore
import Usage

/// A message of Redis's publish and subscribe: an array in RESP2, a push in RESP3.
public enum ChannelMessage: Sendable, Equatable {
    /// `count` is how many subscriptions the connection has now.
    case subscribed(channel: String, count: Int)
    /// `channel` is nil if there were no subscriptions to end.
    case unsubscribed(channel: String?, count: Int)
    /// The user's usage snapshot has changed. The payload is the answer's fields.
    case usage(channel: String, Answer)

    /// - Parameters:
    ///   - version: the version of RESP, 2 or 3.
    ///   - vocabulary: the words of the answer's sentences.
    public func encode(
        into buffer: inout ByteBuffer,
        version: Int,
        in vocabulary: Vocabulary = Words.shipped.standard
    ) {
        buffer.writeStaticString(version == 3 ? ">3\r\n" : "*3\r\n")
        switch self {
        case .subscribed(let channel, let count):
            buffer.writeStaticString("$9\r\nsubscribe\r\n")
            buffer.writeBulk(channel.utf8)
            buffer.writeString(":\(count)\r\n")
        case .unsubscribed(let channel, let count):
            buffer.writeStaticString("$11\r\nunsubscribe\r\n")
            if let channel {
                buffer.writeBulk(channel.utf8)
            } else {
                Reply.null(version: version).encode(into: &buffer)
            }
            buffer.writeString(":\(count)\r\n")
        case .usage(let channel, let answer):
            buffer.writeStaticString("$7\r\nmessage\r\n")
            buffer.writeBulk(channel.utf8)
            buffer.writeBulk(fieldsOf: answer, in: vocabulary)
        }
    }
}

extension ByteBuffer {
    /// Writes the answer to `PING` on a RESP2 connection with subscriptions.
    public mutating func writeSubscribedPong(_ text: EchoedBytes?) {
        writeStaticString("*2\r\n$4\r\npong\r\n")
        writeBulk(text?.bytes ?? [])
    }

    mutating func writeBulk(_ bytes: some Collection<UInt8>) {
        writeString("$\(bytes.count)\r\n")
        writeBytes(bytes)
        writeStaticString("\r\n")
    }

    /// Writes the answer's line without its status word and its end.
    fileprivate mutating func writeBulk(fieldsOf answer: Answer, in vocabulary: Vocabulary) {
        var line = ByteBuffer()
        answer.encode(into: &line, in: vocabulary)
        if let space = line.readableBytesView.firstIndex(of: UInt8(ascii: " ")) {
            line.moveReaderIndex(to: space + 1)
        }
        // The line's CRLF ends the bulk string.
        writeString("$\(line.readableBytes - 2)\r\n")
        writeBuffer(&line)
    }
}
