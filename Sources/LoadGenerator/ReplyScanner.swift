#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// Finds the replies in a stream of bytes and classifies them. Buffers nothing but the first word of a reply.
///
/// Reads all of RESP2, of which Headroom's framing is a part, because `bench` also measures other servers: `+text`,
/// `-CODE text`, `:number`, `$length`, `*count`. Arrays may be nested to any depth, as one number counts the elements
/// that are missing. That is why this is not `LineProtocol.ReplyFrameDecoder`, which buffers whole replies of Headroom.
struct ReplyScanner {
    enum Reply: Equatable {
        case allowed
        case blocked
        /// Any other success.
        case other
        case error(Word)
    }

    /// The first word of a reply, cut to 16 bytes.
    struct Word: Hashable, CustomStringConvertible {
        private(set) var low: UInt64 = 0
        private(set) var high: UInt64 = 0
        private(set) var length = 0

        init() {}

        init(_ text: String) {
            for byte in text.utf8 { append(byte) }
        }

        @inline(__always)
        mutating func append(_ byte: UInt8) {
            if length < 8 {
                low |= UInt64(byte) << UInt64(length * 8)
            } else if length < 16 {
                high |= UInt64(byte) << UInt64(length * 8 - 64)
            }
            length += 1
        }

        var bytes: [UInt8] {
            (0..<min(length, 16)).map { index in
                UInt8(truncatingIfNeeded: (index < 8 ? low : high) >> UInt64(index % 8 * 8))
            }
        }

        /// Printable ASCII only, for tables and terminals.
        var description: String {
            String(decoding: bytes.map { $0 > 0x20 && $0 < 0x7F ? $0 : UInt8(ascii: "?") }, as: UTF8.self)
        }
    }

    struct Malformed: Error, CustomStringConvertible {
        let description: String

        init(description: String) {
            self.description = description
        }

        /// The reply may be an error, such as OVERLOADED where too many connections are open.
        init(withoutRequest reply: Reply) {
            description =
                if case .error(let word) = reply {
                    "the server sent -\(word) without a request"
                } else {
                    "the server sent a reply without a request"
                }
        }
    }

    /// Limits that no real server reaches.
    static let lineMaximum = 65_536
    static let bulkMaximum = 512 << 20
    static let elementsMaximum = 1_048_576

    private static let allowedWord = Word("ALLOWED")
    private static let blockedWord = Word("BLOCKED")

    /// `+`, `-`, `:`, `$` or `*` of the current line; 0 between lines.
    private var type: UInt8 = 0
    private var word = Word()
    private var wordIsComplete = false
    private var lineLength = 0
    /// Missing bytes of a bulk string, including its line end.
    private var bulkLeft = 0
    /// Missing elements of the reply; 0 between replies.
    private var elementsLeft = 0
    /// The kind of the reply, by its outermost element.
    private var reply = Reply.other

    /// The next reply that ends in these bytes, or nil when they are used up. An incomplete reply continues in the next
    /// bytes.
    mutating func next(in bytes: UnsafeRawBufferPointer, at position: inout Int) throws(Malformed) -> Reply? {
        while position < bytes.count {
            if bulkLeft > 0 {
                let taken = min(bulkLeft, bytes.count - position)
                bulkLeft -= taken
                position += taken
                if bulkLeft == 0, elementEnded() { return reply }
                continue
            }
            if type == 0 {
                type = bytes[position]
                position += 1
                word = Word()
                wordIsComplete = false
                lineLength = 0
                continue
            }
            let rest = UnsafeRawBufferPointer(rebasing: bytes[position...])
            let found = rest.baseAddress.flatMap { memchr($0, 0x0A, rest.count) }
            let end = found.map { UnsafeRawPointer($0) - (rest.baseAddress ?? UnsafeRawPointer($0)) } ?? rest.count
            takeWord(rest, end: end)
            lineLength += end
            guard lineLength <= ReplyScanner.lineMaximum else {
                throw Malformed(description: "a line of a reply is longer than \(ReplyScanner.lineMaximum) bytes")
            }
            position += end
            guard found != nil else { return nil }
            position += 1
            if try lineEnded() { return reply }
        }
        return nil
    }

    @inline(__always)
    private mutating func takeWord(_ bytes: UnsafeRawBufferPointer, end: Int) {
        guard !wordIsComplete else { return }
        var index = 0
        while index < end {
            let byte = bytes[index]
            if byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\r") || word.length > 16 {
                wordIsComplete = true
                return
            }
            word.append(byte)
            index += 1
        }
    }

    /// True when the reply is complete.
    private mutating func lineEnded() throws(Malformed) -> Bool {
        let isOutermost = elementsLeft == 0
        if isOutermost {
            elementsLeft = 1
            reply = .other
        }
        switch type {
        case UInt8(ascii: "+"):
            if isOutermost {
                if word == ReplyScanner.allowedWord {
                    reply = .allowed
                } else if word == ReplyScanner.blockedWord {
                    reply = .blocked
                }
            }
        case UInt8(ascii: "-"):
            if isOutermost { reply = .error(word) }
        case UInt8(ascii: ":"):
            break
        case UInt8(ascii: "$"):
            let length = try number(atMost: ReplyScanner.bulkMaximum)
            if length >= 0 {
                type = 0
                bulkLeft = length + 2
                return false
            }
        case UInt8(ascii: "*"):
            let count = try number(atMost: ReplyScanner.elementsMaximum)
            if count > 0 {
                type = 0
                elementsLeft += count - 1
                guard elementsLeft <= ReplyScanner.elementsMaximum else {
                    throw Malformed(description: "a reply has more than \(ReplyScanner.elementsMaximum) elements")
                }
                return false
            }
        default:
            throw Malformed(description: "a reply begins with byte \(type), which is not RESP2")
        }
        type = 0
        return elementEnded()
    }

    @inline(__always)
    private mutating func elementEnded() -> Bool {
        elementsLeft -= 1
        return elementsLeft == 0
    }

    /// A length or count; -1 is RESP2's null.
    private func number(atMost maximum: Int) throws(Malformed) -> Int {
        let text = String(decoding: word.bytes, as: UTF8.self)
        guard word.length <= 16, let number = Int(text), (-1...maximum).contains(number) else {
            throw Malformed(description: "a reply has an invalid length: \(word)")
        }
        return number
    }
}
