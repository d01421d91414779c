import LineProtocol

/// The fields of one line of a reply, by name. docs/reference/fields.md lists the names.
public struct Record: Sendable, Equatable, Encodable {
    public let values: [String: FieldValue]

    /// Names of fields that are counts.
    private static let numbers: Set = [
        "used", "held", "limit", "remaining", "day", "days", "retry_after", "shadow", "released", "replayed",
        "degraded", "users", "messages", "window_limit", "window_used", "window_remaining", "weight",
        "silent", "gentle", "prominent", "blocked",
    ]

    public init(_ line: FieldLine) {
        values = Dictionary(
            line.fields.map { field in
                guard Record.numbers.contains(field.name) else { return (field.name, FieldValue.text(field.value)) }
                return (field.name, field.value == "unlimited" ? .null : FieldValue(number: field.value))
            },
            uniquingKeysWith: { first, _ in first }
        )
    }

    public func encode(to encoder: any Encoder) throws {
        try values.encode(to: encoder)
    }

    func count(_ name: String) -> Int {
        if case .integer(let number) = values[name] { number } else { 0 }
    }

    func text(_ name: String) -> String? {
        if case .text(let text) = values[name] { printable(text) } else { nil }
    }

    /// A limit or a remaining number; `unlimited` without a limit.
    func allowance(_ name: String) -> String {
        values[name] == .null ? "unlimited" : grouped(count(name))
    }
}

/// A reply that this program cannot decode.
public struct UnexpectedReply: Error, CustomStringConvertible {
    public let description = "the service's answer cannot be read; it may be another version, or another service"

    public init() {}
}

extension [Record] {
    /// - Throws: `UnexpectedReply` unless each line is a field line of that status.
    public init(_ lines: [String], status: String) throws(UnexpectedReply) {
        var records: [Record] = []
        for text in lines {
            guard let line = FieldLine(text), line.status == status else { throw UnexpectedReply() }
            records.append(Record(line))
        }
        self = records
    }
}

extension Record {
    /// - Throws: `UnexpectedReply` unless the reply is one field line of that status.
    public init(_ lines: [String], status: String) throws(UnexpectedReply) {
        let records = try [Record](lines, status: status)
        guard records.count == 1 else { throw UnexpectedReply() }
        self = records[0]
    }
}
