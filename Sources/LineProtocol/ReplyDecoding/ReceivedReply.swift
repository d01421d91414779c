import NIOCore
import Usage

/// A decoded reply, as clients use it. `Reply` is what a service encodes.
public enum ReceivedReply: Sendable, Equatable {
    /// A line about a user.
    case answer(ReceivedAnswer)
    /// Any other line, without its plus sign.
    case line(String)
    /// The lines of a list, without their plus signs.
    case list([String])
    case error(ReceivedError)
    /// A message of publish and subscribe.
    case message(ReceivedMessage)

    public init(_ frame: ReplyFrameDecoder.Frame) throws(MalformedReply) {
        switch frame {
        case .single(let element): self = try ReceivedReply(element)
        case .list(let elements):
            if elements.first?.kind == .bulk {
                self = .message(try ReceivedMessage(elements))
                return
            }
            guard elements.allSatisfy({ $0.kind == .simple }) else { throw MalformedReply(.list) }
            self = .list(elements.map(\.text))
        }
    }

    private init(_ element: ReplyElement) throws(MalformedReply) {
        switch element.kind {
        case .simple:
            let answer = try element.bytes.withUnsafeReadableBytes { bytes throws(MalformedReply) in
                try ReceivedAnswer.decode(bytes)
            }
            if let answer {
                self = .answer(answer)
            } else {
                self = .line(element.text)
            }
        case .error: self = .error(ReceivedError(element.text))
        case .integer, .bulk: throw MalformedReply(.kind)
        }
    }
}

/// A decoded error. The code is a string, because newer services may send codes that `ReplyError.Code` does not have.
public struct ReceivedError: Sendable, Equatable {
    public var code: String
    public var retryAfterMilliseconds: Int?
    public var text: String

    /// - Parameter line: the line without its minus sign.
    public init(_ line: String) {
        var words = line[...]
        code = ReceivedError.removeWord(from: &words)
        var rest = words
        let first = ReceivedError.removeWord(from: &rest)
        if first.hasPrefix("retry_ms="), let milliseconds = Int(first.dropFirst("retry_ms=".count)) {
            retryAfterMilliseconds = milliseconds
            words = rest
        }
        text = String(words)
    }

    /// Removes the first word. It compares bytes, because a space and a combining accent after it are one character.
    private static func removeWord(from text: inout Substring) -> String {
        let word = text.utf8.prefix { $0 != UInt8(ascii: " ") }
        text = text[word.endIndex...]
        if !text.isEmpty { text = text[text.utf8.index(after: text.startIndex)...] }
        return String(word) ?? ""
    }
}

/// A decoded message of publish and subscribe, which `ChannelMessage.encode` writes.
public enum ReceivedMessage: Sendable, Equatable {
    case subscribed(channel: String)
    case unsubscribed(channel: String)
    case usage(channel: String, UsageStatus)
    /// The answer to `PING` on a connection with subscriptions.
    case pong

    init(_ elements: [ReplyElement]) throws(MalformedReply) {
        switch (elements.first?.text, elements.count) {
        case ("subscribe", 3): self = .subscribed(channel: elements[1].text)
        case ("unsubscribe", 3): self = .unsubscribed(channel: elements[1].text)
        case ("pong", 2): self = .pong
        case ("message", 3):
            var line = ByteBuffer(string: "OK ")
            line.writeImmutableBuffer(elements[2].bytes)
            let answer = try line.withUnsafeReadableBytes { bytes throws(MalformedReply) in
                try ReceivedAnswer.decode(bytes)
            }
            guard let answer else { throw MalformedReply(.fieldLine) }
            self = .usage(channel: elements[1].text, answer.usage)
        default: throw MalformedReply(.list)
        }
    }
}
