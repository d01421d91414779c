/// A strict decoder of replies, written from Redis's specification, independently of our encoder.
struct RESPReader {
    indirect enum Value: Equatable {
        case simple(String)
        case error(String)
        case integer(Int)
        case bulk(String)
        case array([Value])
        case push([Value])
        /// Keys and values, alternating.
        case map([Value])
        case null
    }

    private var rest: ArraySlice<UInt8>

    init(_ bytes: [UInt8]) {
        rest = bytes[...]
    }

    var isAtEnd: Bool { rest.isEmpty }

    mutating func all() throws(Violation) -> [Value] {
        var values: [Value] = []
        while !isAtEnd { values.append(try next()) }
        return values
    }

    mutating func next() throws(Violation) -> Value {
        let kind = rest.popFirst().map { Character(Unicode.Scalar($0)) }
        let line = try line()
        switch kind {
        case "+": return .simple(line)
        case "-": return .error(line)
        case ":": return .integer(try number(line))
        case "$":
            if line == "-1" { return .null }
            return .bulk(try bulk(try number(line)))
        case "*": return .array(try values(try number(line)))
        case ">": return .push(try values(try number(line)))
        case "%": return .map(try values(2 * (try number(line))))
        case "_" where line.isEmpty: return .null
        default: throw Violation(description: "\(kind.map(String.init) ?? "the end") begins no reply")
        }
    }

    private mutating func values(_ count: Int) throws(Violation) -> [Value] {
        var values: [Value] = []
        for _ in 0..<count { values.append(try next()) }
        return values
    }

    /// The bytes up to CRLF. A CR without LF is an error.
    private mutating func line() throws(Violation) -> String {
        guard let end = rest.firstIndex(of: UInt8(ascii: "\r")), rest[end...].dropFirst().first == UInt8(ascii: "\n")
        else { throw Violation(description: "a line without CRLF") }
        let line = rest[..<end]
        rest = rest[(end + 2)...]
        try require(line.allSatisfy { $0 >= 0x20 && $0 != 0x7F }, "a control character in a line: \(Array(line))")
        return try text(line)
    }

    private mutating func bulk(_ count: Int) throws(Violation) -> String {
        try require(rest.count >= count + 2, "an incomplete bulk string")
        let bytes = rest.prefix(count)
        rest = rest.dropFirst(count)
        try require(rest.prefix(2).elementsEqual("\r\n".utf8), "a bulk string without CRLF")
        rest = rest.dropFirst(2)
        return try text(bytes)
    }

    private func text(_ bytes: ArraySlice<UInt8>) throws(Violation) -> String {
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw Violation(description: "not UTF-8: \(Array(bytes))")
        }
        return text
    }

    private func number(_ text: String) throws(Violation) -> Int {
        guard let number = Int(text), number >= 0, String(number) == text else {
            throw Violation(description: "not a number: \(text)")
        }
        return number
    }
}
