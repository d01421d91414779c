import NIOCore

/// The bytes of a request. Only the digits of the user and of the key differ between requests, and their lengths are
/// fixed, so writing a request is a copy and a few digits.
struct RequestTemplate: Sendable {
    /// Characters of a user id before the number.
    static let userPrefixLength = 24
    static let userDigits = 12
    static let keyDigits = 16

    private let bytes: [UInt8]
    /// Where the digits start.
    private let userOffsets: [Int]
    private let keyOffsets: [Int]

    /// - Parameters:
    ///   - words: with the placeholders `{user}` and `{key}`.
    ///   - userPrefix: the first 24 characters of each user id.
    ///   - keyPrefix: the start of each key, unique to the run.
    init(words: [String], userPrefix: String, keyPrefix: String) {
        var bytes = Array("*\(words.count)\r\n".utf8)
        var userOffsets: [Int] = []
        var keyOffsets: [Int] = []
        for word in words {
            var text: [UInt8] = []
            var users: [Int] = []
            var keys: [Int] = []
            var rest = word[...]
            while let first = rest.first {
                if rest.hasPrefix("{user}") {
                    text += Array(userPrefix.utf8)
                    users.append(text.count)
                    text += [UInt8](repeating: UInt8(ascii: "0"), count: RequestTemplate.userDigits)
                    rest = rest.dropFirst(6)
                } else if rest.hasPrefix("{key}") {
                    text += Array(keyPrefix.utf8)
                    keys.append(text.count)
                    text += [UInt8](repeating: UInt8(ascii: "0"), count: RequestTemplate.keyDigits)
                    rest = rest.dropFirst(5)
                } else {
                    text += Array(String(first).utf8)
                    rest = rest.dropFirst()
                }
            }
            bytes += Array("$\(text.count)\r\n".utf8)
            userOffsets += users.map { $0 + bytes.count }
            keyOffsets += keys.map { $0 + bytes.count }
            bytes += text + Array("\r\n".utf8)
        }
        self.bytes = bytes
        self.userOffsets = userOffsets
        self.keyOffsets = keyOffsets
    }

    func write(user: UInt64, key: UInt64, into buffer: inout ByteBuffer) {
        buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: bytes.count) { output in
            bytes.withUnsafeBytes { output.copyMemory(from: $0) }
            for offset in userOffsets {
                var rest = user
                for position in stride(from: offset + RequestTemplate.userDigits - 1, through: offset, by: -1) {
                    guard rest > 0 else { break }
                    let (quotient, digit) = rest.quotientAndRemainder(dividingBy: 10)
                    output[position] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: digit)
                    rest = quotient
                }
            }
            for offset in keyOffsets {
                var rest = key
                for position in stride(from: offset + RequestTemplate.keyDigits - 1, through: offset, by: -1) {
                    let digit = UInt8(truncatingIfNeeded: rest & 15)
                    output[position] = digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10
                    rest >>= 4
                }
            }
            return bytes.count
        }
    }
}
