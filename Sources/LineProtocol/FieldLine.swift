/// A `+STATUS name=value …` line, read back: what tests and clients take a reply apart with.
///
/// Fields keep their order. A reader must ignore names it does not know, because new ones may be added.
public struct FieldLine: Sendable, Equatable {
    public struct Field: Sendable, Equatable {
        public var name: String
        public var value: String

        public init(name: String, value: String) {
            self.name = name
            self.value = value
        }
    }

    /// `ALLOWED`, `BLOCKED`, `OK`, `PERIOD`: without the plus sign.
    public var status: String
    public var fields: [Field]

    /// The value of the field `name`, or nil when it does not stand there.
    public subscript(name: String) -> String? {
        fields.first { $0.name == name }?.value
    }
}

extension FieldLine {
    /// Reads a line, with or without its line end. Nil for anything that is not of the form: no plus sign, a status
    /// that is not in upper case, a token without an equals sign, a name twice, a quote that is not closed.
    public init?(_ line: some StringProtocol) {
        var scanner = FieldScanner(Array(line.utf8))
        guard scanner.take("+"), let status = scanner.word(of: "A"..."Z") else { return nil }
        self.init(status: status, fields: [])
        while !scanner.isAtEnd {
            guard scanner.take(" "), let name = scanner.word(of: "a"..."z"), scanner.take("="),
                let value = scanner.value(), self[name] == nil
            else { return nil }
            fields.append(Field(name: name, value: value))
        }
    }
}

private struct FieldScanner {
    private var rest: ArraySlice<UInt8>

    init(_ bytes: [UInt8]) {
        rest = bytes[...]
        if rest.last == UInt8(ascii: "\n") { rest.removeLast() }
        if rest.last == UInt8(ascii: "\r") { rest.removeLast() }
    }

    var isAtEnd: Bool { rest.isEmpty }

    mutating func take(_ character: Unicode.Scalar) -> Bool {
        guard rest.first == UInt8(ascii: character) else { return false }
        rest.removeFirst()
        return true
    }

    /// One or more letters of one case, or `_`.
    mutating func word(of letters: ClosedRange<Unicode.Scalar>) -> String? {
        let word = rest.prefix { letters.contains(Unicode.Scalar($0)) || $0 == UInt8(ascii: "_") }
        rest = rest.dropFirst(word.count)
        return word.isEmpty ? nil : String(decoding: word, as: UTF8.self)
    }

    /// A value up to the next space, or a quoted one.
    mutating func value() -> String? {
        guard take("\"") else {
            let value = rest.prefix { $0 != UInt8(ascii: " ") }
            rest = rest.dropFirst(value.count)
            let isPlain = !value.isEmpty && !value.contains(UInt8(ascii: "\"")) && !value.contains(UInt8(ascii: "\\"))
            return isPlain ? String(decoding: value, as: UTF8.self) : nil
        }
        var value: [UInt8] = []
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "\""): return String(decoding: value, as: UTF8.self)
            case UInt8(ascii: "\\"):
                guard let escaped = rest.popFirst(), escaped == UInt8(ascii: "\"") || escaped == UInt8(ascii: "\\")
                else { return nil }
                value.append(escaped)
            default: value.append(byte)
            }
        }
        return nil
    }
}
