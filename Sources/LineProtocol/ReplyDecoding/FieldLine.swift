/// A decoded `+STATUS name=value …` line, with its fields in order.
///
/// Callers must ignore unknown names: newer services may send more fields.
public struct FieldLine: Sendable, Equatable {
    public struct Field: Sendable, Equatable {
        public var name: String
        public var value: String

        public init(name: String, value: String) {
            self.name = name
            self.value = value
        }
    }

    /// The status word without the plus sign: `ALLOWED`, `BLOCKED`, `OK`, `PERIOD`.
    public var status: String
    public var fields: [Field]

    /// The value of the field `name`, or nil if it is absent.
    public subscript(name: String) -> String? {
        fields.first { $0.name == name }?.value
    }
}

extension FieldLine {
    /// Decodes a line, with or without its line end. It is nil for any other form: no plus sign, a status that is not
    /// in upper case, a token without an equals sign, a repeated name, an unclosed quote.
    public init?(_ line: some StringProtocol) {
        var line = String(line)
        guard let decoded = line.withUTF8({ FieldLine(bytes: UnsafeRawBufferPointer($0)) }) else { return nil }
        self = decoded
    }

    private init?(bytes: UnsafeRawBufferPointer) {
        var scanner = FieldScanner(bytes)
        guard let status = scanner.status() else { return nil }
        self.init(status: status.text, fields: [])
        while !scanner.isAtEnd {
            guard let name = scanner.name()?.text, let value = scanner.value(), self[name] == nil else { return nil }
            fields.append(Field(name: name, value: value.text))
        }
    }
}
