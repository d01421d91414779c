/// Parses an untrusted JSON text (RFC 8259). Syntax and limits are checked in one pass over the same bytes.
/// Foundation's decoder also accepts UTF-16 and UTF-32, in which a check of the bytes would see other commas and
/// brackets.
///
/// A value costs some dozen bytes and a level costs a stack frame, and the largest permitted body has room for many of
/// both: hence the limits.
struct JSONParser {
    /// Stores nest at most six levels.
    static let depthMaximum = 32
    static let valuesMaximum = 20_000
    /// The largest `Double` has 309 digits.
    static let numberLengthMaximum = 400

    private let bytes: [UInt8]
    private var position = 0
    private var depth = 0
    private var values = 0

    /// - Throws: `JSONError`: encoding, too large or malformed.
    static func parse(_ bytes: [UInt8]) throws(JSONError) -> JSONValue {
        // A zero byte is not valid in JSON, and most characters of UTF-16 and UTF-32 contain one.
        guard !bytes.contains(0), String(validating: bytes, as: UTF8.self) != nil else {
            throw JSONError(.encoding, "is not UTF-8; send JSON in UTF-8")
        }
        var parser = JSONParser(bytes)
        let value = try parser.value()
        parser.skipSpace()
        guard parser.position == bytes.count else { throw .notJSON }
        return value
    }

    private init(_ bytes: [UInt8]) {
        self.bytes = bytes
        // A byte order mark may be ignored (RFC 8259, 8.1).
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { position = 3 }
    }

    private mutating func value() throws(JSONError) -> JSONValue {
        values += 1
        guard values <= JSONParser.valuesMaximum else {
            throw JSONError(.tooLarge, "has more than \(JSONParser.valuesMaximum) values")
        }
        skipSpace()
        switch next {
        case UInt8(ascii: "{"): return .object(try members())
        case UInt8(ascii: "["): return .array(try elements())
        case UInt8(ascii: "\""): return .string(try string())
        case UInt8(ascii: "t"): return try literal("true", .bool(true))
        case UInt8(ascii: "f"): return try literal("false", .bool(false))
        case UInt8(ascii: "n"): return try literal("null", .null)
        default: return try number()
        }
    }

    // MARK: Objects and arrays

    private mutating func descend() throws(JSONError) {
        position += 1
        depth += 1
        guard depth <= JSONParser.depthMaximum else {
            throw JSONError(.tooLarge, "is nested deeper than \(JSONParser.depthMaximum)")
        }
    }

    /// Of two members with the same name the later one counts.
    private mutating func members() throws(JSONError) -> [String: JSONValue] {
        try descend()
        defer { depth -= 1 }
        var members: [String: JSONValue] = [:]
        skipSpace()
        if take(UInt8(ascii: "}")) { return members }
        while true {
            skipSpace()
            guard next == UInt8(ascii: "\"") else { throw .notJSON }
            let name = try string()
            skipSpace()
            guard take(UInt8(ascii: ":")) else { throw .notJSON }
            members[name] = try value()
            skipSpace()
            if take(UInt8(ascii: "}")) { return members }
            guard take(UInt8(ascii: ",")) else { throw .notJSON }
        }
    }

    private mutating func elements() throws(JSONError) -> [JSONValue] {
        try descend()
        defer { depth -= 1 }
        var elements: [JSONValue] = []
        skipSpace()
        if take(UInt8(ascii: "]")) { return elements }
        while true {
            elements.append(try value())
            skipSpace()
            if take(UInt8(ascii: "]")) { return elements }
            guard take(UInt8(ascii: ",")) else { throw .notJSON }
        }
    }

    // MARK: Texts

    private mutating func string() throws(JSONError) -> String {
        position += 1
        let start = position
        // Fast path: most texts have no escapes.
        while let byte = next, byte >= 0x20, byte != UInt8(ascii: "\""), byte != UInt8(ascii: "\\") { position += 1 }
        if next == UInt8(ascii: "\"") {
            defer { position += 1 }
            return String(decoding: bytes[start..<position], as: UTF8.self)
        }
        var text = Array(bytes[start..<position])
        while let byte = next, byte >= 0x20 {
            position += 1
            switch byte {
            case UInt8(ascii: "\""): return String(decoding: text, as: UTF8.self)
            case UInt8(ascii: "\\"): text += String(try escaped()).utf8
            default: text.append(byte)
            }
        }
        throw .notJSON
    }

    /// After a backslash.
    private mutating func escaped() throws(JSONError) -> Unicode.Scalar {
        guard let byte = next else { throw .notJSON }
        position += 1
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return Unicode.Scalar(byte)
        case UInt8(ascii: "b"): return "\u{8}"
        case UInt8(ascii: "f"): return "\u{C}"
        case UInt8(ascii: "n"): return "\n"
        case UInt8(ascii: "r"): return "\r"
        case UInt8(ascii: "t"): return "\t"
        case UInt8(ascii: "u"): break
        default: throw .notJSON
        }
        let unit = try codeUnit()
        guard UTF16.isLeadSurrogate(unit) else {
            guard let scalar = Unicode.Scalar(unit) else { throw .notJSON }
            return scalar
        }
        // A single surrogate is not a character.
        guard take(UInt8(ascii: "\\")), take(UInt8(ascii: "u")) else { throw .notJSON }
        let trail = try codeUnit()
        guard UTF16.isTrailSurrogate(trail),
            let scalar = Unicode.Scalar(0x10000 + (UInt32(unit & 0x3FF) << 10 | UInt32(trail & 0x3FF)))
        else { throw .notJSON }
        return scalar
    }

    private mutating func codeUnit() throws(JSONError) -> UInt16 {
        var unit: UInt16 = 0
        for _ in 0..<4 {
            guard let byte = next else { throw .notJSON }
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): unit = unit << 4 | UInt16(byte - UInt8(ascii: "0"))
            case UInt8(ascii: "a")...UInt8(ascii: "f"): unit = unit << 4 | UInt16(byte - UInt8(ascii: "a") + 10)
            case UInt8(ascii: "A")...UInt8(ascii: "F"): unit = unit << 4 | UInt16(byte - UInt8(ascii: "A") + 10)
            default: throw .notJSON
            }
            position += 1
        }
        return unit
    }

    // MARK: Numbers and literals

    /// A whole number that fits is an integer in every notation: 1, 1.0 and 1e0 are the same value.
    private mutating func number() throws(JSONError) -> JSONValue {
        let start = position
        _ = take(UInt8(ascii: "-"))
        if !take(UInt8(ascii: "0")) { try digits() }
        let integerEnd = position
        if take(UInt8(ascii: ".")) { try digits() }
        if take(UInt8(ascii: "e")) || take(UInt8(ascii: "E")) {
            if !take(UInt8(ascii: "+")) { _ = take(UInt8(ascii: "-")) }
            try digits()
        }
        guard position - start <= JSONParser.numberLengthMaximum else {
            throw JSONError(.tooLarge, "has a number of more than \(JSONParser.numberLengthMaximum) characters")
        }
        let text = String(decoding: bytes[start..<position], as: UTF8.self)
        if position == integerEnd, let integer = Int64(text) { return .integer(integer) }
        guard let decimal = Double(text), decimal.isFinite else { throw .notJSON }
        return Int64(exactly: decimal).map { .integer($0) } ?? .decimal(decimal)
    }

    private mutating func digits() throws(JSONError) {
        let start = position
        while let byte = next, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) { position += 1 }
        guard position > start else { throw .notJSON }
    }

    private mutating func literal(_ word: StaticString, _ value: JSONValue) throws(JSONError) -> JSONValue {
        let count = word.utf8CodeUnitCount
        guard position + count <= bytes.count,
            bytes[position..<position + count].elementsEqual(UnsafeBufferPointer(start: word.utf8Start, count: count))
        else { throw .notJSON }
        position += count
        return value
    }

    // MARK: Bytes

    private var next: UInt8? { position < bytes.count ? bytes[position] : nil }

    private mutating func take(_ byte: UInt8) -> Bool {
        guard next == byte else { return false }
        position += 1
        return true
    }

    private mutating func skipSpace() {
        while let byte = next, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 { position += 1 }
    }
}
