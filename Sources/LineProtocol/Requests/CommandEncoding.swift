import NIOCore
import Usage

extension Command {
    /// Writes the request as a client sends it: as a line, or as an array where an argument has spaces or control
    /// characters.
    public func encode(into buffer: inout ByteBuffer) {
        encode(with: nil, into: &buffer)
    }

    /// - Parameter sentences: the options `lang=` and `tz=`.
    private func encode(with sentences: SentenceOptions?, into buffer: inout ByteBuffer) {
        switch self {
        case .withSentences(let command, let sentences): command.encode(with: sentences, into: &buffer)
        case .consume(let user, let messages, let key):
            write(.consume, user, Command.unlessDefault(messages), key, with: sentences, into: &buffer)
        case .check(let user, let messages):
            write(.check, user, Command.unlessDefault(messages), nil, with: sentences, into: &buffer)
        case .commit(let user, let messages, let key):
            write(.commit, user, messages, key, with: sentences, into: &buffer)
        case .release(let user, let key): write(.release, user, nil, key, with: sentences, into: &buffer)
        case .reserve(let user, let messages, let key, let ttlSeconds):
            write(.reserve, user, Command.unlessDefault(messages), key, ttlSeconds, with: sentences, into: &buffer)
        case .ping(let text?): Command.write(.ping, text, into: &buffer)
        case .echo(let text): Command.write(.echo, text, into: &buffer)
        default: Command.write(answered(with: sentences).tokens, into: &buffer)
        }
    }

    /// Writes an array, because a line cannot have all bytes.
    private static func write(_ verb: Verb, _ text: EchoedBytes, into buffer: inout ByteBuffer) {
        let name = verb.rawValue
        buffer.writeString("*2\r\n$\(name.utf8.count)\r\n\(name)\r\n$\(text.bytes.count)\r\n")
        buffer.writeBytes(text.bytes)
        buffer.writeStaticString("\r\n")
    }

    /// Writes a verb that a chat backend sends for each chat message, without allocating an array of tokens.
    private func write(
        _ verb: Verb,
        _ user: UserID,
        _ messages: Int?,
        _ key: MessageKey?,
        _ ttlSeconds: Int? = nil,
        with sentences: SentenceOptions?,
        into buffer: inout ByteBuffer
    ) {
        // A key with spaces or control characters needs the array form.
        guard key.map({ Command.isPrintableWord($0.text) }) ?? true else {
            Command.write(answered(with: sentences).tokens, into: &buffer)
            return
        }
        // The verb, the user's id, two integers and the names of the options take less than 160 bytes.
        let capacity = 160 + LanguageTag.lengthMaximum + CivilTimeZone.lengthMaximum + (key?.text.utf8.count ?? 0)
        buffer.writeLine(capacityBytes: capacity) { line in
            line.putWord(verb.rawValue)
            line.putLiteral(" ")
            line.put(user)
            if let messages {
                line.putLiteral(" ")
                line.put(messages)
            }
            if let key {
                line.putLiteral(" key=")
                line.putWord(key.text)
            }
            if let ttlSeconds {
                line.putLiteral(" ttl=")
                line.put(ttlSeconds)
            }
            if let language = sentences?.language {
                line.putLiteral(" lang=")
                line.putWord(language.text)
            }
            if let timeZone = sentences?.timeZone {
                line.putLiteral(" tz=")
                line.putWord(timeZone.name)
            }
        }
    }

    private static func unlessDefault(_ messages: Int) -> Int? { messages == 1 ? nil : messages }

    /// Whether the text is printable ASCII without a space, so that it can be part of a line.
    private static func isPrintableWord(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }
    }

    private static func write(_ tokens: [String], into buffer: inout ByteBuffer) {
        guard !tokens.allSatisfy(isPrintableWord) else {
            buffer.writeString(tokens.joined(separator: " "))
            buffer.writeStaticString("\r\n")
            return
        }
        buffer.writeString("*\(tokens.count)\r\n")
        for token in tokens { buffer.writeString("$\(token.utf8.count)\r\n\(token)\r\n") }
    }
}
