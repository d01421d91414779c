/// Reads JSON (RFC 8259) that comes from outside: bounded in depth and in how many values it makes, so that a small
/// text cannot cost much, and strict where two readers could differ. A name that stands twice in an object is an error:
/// who checked the first and who used the second would have seen different events.
struct JSONParser {
    /// No store nests deeper than six.
    static let depthMaximum = 32
    static let valuesMaximum = 20_000

    private let bytes: [UInt8]
    private var position = 0
    private var values = 0

    static func parse(_ bytes: [UInt8]) throws(StoreEventError) -> JSONValue {
        var parser = JSONParser(bytes: bytes)
        let value = try parser.value(depth: 0)
        parser.skipSpace()
        guard parser.position == bytes.count else { throw parser.malformed("something follows the JSON value") }
        return value
    }

    private init(bytes: [UInt8]) {
        self.bytes = bytes
    }

    private func malformed(_ problem: String) -> StoreEventError {
        .malformed("the body is not JSON: \(problem), at byte \(position)")
    }

    private mutating func skipSpace() {
        while position < bytes.count, [0x20, 0x09, 0x0A, 0x0D].contains(bytes[position]) { position += 1 }
    }

    private mutating func take(_ character: Unicode.Scalar) -> Bool {
        guard position < bytes.count, bytes[position] == UInt8(ascii: character) else { return false }
        position += 1
        return true
    }

    private mutating func take(word: StaticString) -> Bool {
        let length = word.utf8CodeUnitCount
        guard bytes.count - position >= length,
            word.withUTF8Buffer({ $0.elementsEqual(bytes[position..<position + length]) })
        else { return false }
        position += length
        return true
    }

    private mutating func value(depth: Int) throws(StoreEventError) -> JSONValue {
        values += 1
        guard depth < JSONParser.depthMaximum, values <= JSONParser.valuesMaximum else {
            let what =
                depth < JSONParser.depthMaximum
                ? "has more than \(JSONParser.valuesMaximum) values"
                : "is nested deeper than \(JSONParser.depthMaximum)"
            throw StoreEventError(.tooLarge, "the body \(what)")
        }
        skipSpace()
        guard position < bytes.count else { throw malformed("it ends too early") }
        switch bytes[position] {
        case UInt8(ascii: "{"): return try object(depth: depth)
        case UInt8(ascii: "["): return try array(depth: depth)
        case UInt8(ascii: "\""): return .string(try string())
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return try number()
        default:
            if take(word: "true") { return .bool(true) }
            if take(word: "false") { return .bool(false) }
            if take(word: "null") { return .null }
            throw malformed("a value was expected")
        }
    }

    private mutating func object(depth: Int) throws(StoreEventError) -> JSONValue {
        position += 1
        var members: [String: JSONValue] = [:]
        skipSpace()
        if take("}") { return .object(members) }
        while true {
            skipSpace()
            guard position < bytes.count, bytes[position] == UInt8(ascii: "\"") else {
                throw malformed("a name was expected")
            }
            let name = try string()
            skipSpace()
            guard take(":") else { throw malformed("a colon was expected") }
            guard members.updateValue(try value(depth: depth + 1), forKey: name) == nil else {
                throw malformed("an object has one name twice")
            }
            skipSpace()
            if take("}") { return .object(members) }
            guard take(",") else { throw malformed("a comma or } was expected") }
        }
    }

    private mutating func array(depth: Int) throws(StoreEventError) -> JSONValue {
        position += 1
        var elements: [JSONValue] = []
        skipSpace()
        if take("]") { return .array(elements) }
        while true {
            elements.append(try value(depth: depth + 1))
            skipSpace()
            if take("]") { return .array(elements) }
            guard take(",") else { throw malformed("a comma or ] was expected") }
        }
    }

    private mutating func number() throws(StoreEventError) -> JSONValue {
        let start = position
        _ = take("-")
        // No leading zero: 012 reads as 12 here and as 10 there.
        if !take("0"), !takeDigits() { throw malformed("a digit was expected") }
        var isInteger = true
        if take(".") {
            isInteger = false
            guard takeDigits() else { throw malformed("a digit was expected") }
        }
        if take("e") || take("E") {
            isInteger = false
            if !take("+") { _ = take("-") }
            guard takeDigits() else { throw malformed("a digit was expected") }
        }
        guard position - start <= 64 else { throw malformed("a number has more than 64 characters") }
        let text = String(decoding: bytes[start..<position], as: UTF8.self)
        if isInteger, let integer = Int64(text) { return .integer(integer) }
        guard let decimal = Double(text), decimal.isFinite else { throw malformed("a number is too large") }
        return .decimal(decimal)
    }

    private mutating func takeDigits() -> Bool {
        let start = position
        while position < bytes.count, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(bytes[position]) {
            position += 1
        }
        return position > start
    }
}

extension JSONParser {
    private mutating func string() throws(StoreEventError) -> String {
        position += 1
        var text: [UInt8] = []
        while true {
            let start = position
            while position < bytes.count, bytes[position] >= 0x20, bytes[position] != UInt8(ascii: "\""),
                bytes[position] != UInt8(ascii: "\\")
            {
                position += 1
            }
            text += bytes[start..<position]
            guard position < bytes.count else { throw malformed("a text does not end") }
            guard bytes[position] >= 0x20 else { throw malformed("a text holds a control character") }
            position += 1
            if bytes[position - 1] == UInt8(ascii: "\"") { break }
            text += try escape().utf8
        }
        guard let string = String(validating: text, as: UTF8.self) else { throw malformed("a text is not UTF-8") }
        return string
    }

    private mutating func escape() throws(StoreEventError) -> String {
        guard position < bytes.count else { throw malformed("a text does not end") }
        position += 1
        switch bytes[position - 1] {
        case UInt8(ascii: "\""): return "\""
        case UInt8(ascii: "\\"): return "\\"
        case UInt8(ascii: "/"): return "/"
        case UInt8(ascii: "b"): return "\u{8}"
        case UInt8(ascii: "f"): return "\u{C}"
        case UInt8(ascii: "n"): return "\n"
        case UInt8(ascii: "r"): return "\r"
        case UInt8(ascii: "t"): return "\t"
        case UInt8(ascii: "u"): return String(try escapedScalar())
        default: throw malformed("a text has an escape that JSON does not know")
        }
    }

    private mutating func escapedScalar() throws(StoreEventError) -> Unicode.Scalar {
        let first = try codeUnit()
        if let scalar = Unicode.Scalar(first) { return scalar }
        guard first < 0xDC00, take(word: "\\u") else { throw malformed("a text has half of a surrogate pair") }
        let second = try codeUnit()
        guard (0xDC00...0xDFFF).contains(second),
            let scalar = Unicode.Scalar(0x10000 + (UInt32(first) - 0xD800) << 10 + (UInt32(second) - 0xDC00))
        else { throw malformed("a text has half of a surrogate pair") }
        return scalar
    }

    private mutating func codeUnit() throws(StoreEventError) -> UInt16 {
        guard bytes.count - position >= 4 else { throw malformed("a text does not end") }
        var unit: UInt16 = 0
        for byte in bytes[position..<position + 4] {
            guard let digit = Character(Unicode.Scalar(byte)).hexDigitValue, byte < 0x80 else {
                throw malformed("an escape has no four hexadecimal digits")
            }
            unit = unit << 4 | UInt16(digit)
        }
        position += 4
        return unit
    }
}
