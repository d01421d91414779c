/// The answer to `INFO`, decoded.
public struct ServiceInfo: Sendable, Equatable, Encodable {
    /// The values by the names of docs/reference/info.md.
    public let values: [String: FieldValue]

    /// Values that are text even if they look like a number.
    private static let texts: Set = ["version", "database", "database_version", "authentication"]

    /// - Parameter lines: `+name=value` each; lines of other forms are ignored, because new forms may be added.
    /// - Throws: `UnexpectedReply` without a version, which every INFO has.
    public init(lines: [String]) throws(UnexpectedReply) {
        var values: [String: FieldValue] = [:]
        for line in lines {
            let parts = line.drop { $0 == "+" }.split(separator: "=", maxSplits: 1).map(String.init)
            guard parts.count == 2 else { continue }
            values[parts[0]] = ServiceInfo.texts.contains(parts[0]) ? .text(parts[1]) : FieldValue(number: parts[1])
        }
        guard values["version"] != nil, values["database"] != nil else { throw UnexpectedReply() }
        self.values = values
    }

    public func encode(to encoder: any Encoder) throws {
        try values.encode(to: encoder)
    }

    func text(_ name: String) -> String? {
        switch values[name] {
        case .text(let text): printable(text)
        case .integer(let number): "\(number)"
        case .decimal(let number): "\(number)"
        case .list, .null, nil: nil
        }
    }

    /// A missing counter is 0: INFO omits counters that are 0.
    func count(_ name: String) -> Int {
        if case .integer(let number) = values[name] { number } else { 0 }
    }

    func number(_ name: String) -> Double? {
        switch values[name] {
        case .integer(let number): Double(number)
        case .decimal(let number): number
        default: nil
        }
    }

    /// The counters whose names begin with `prefix`, such as `verb_`, by the rest of the name; the largest first.
    func counters(_ prefix: String) -> [(name: String, count: Int)] {
        values.compactMap { name, value in
            if name.hasPrefix(prefix), case .integer(let count) = value {
                (String(name.dropFirst(prefix.count)), count)
            } else {
                nil
            }
        }.sorted { $0.1 != $1.1 ? $0.1 > $1.1 : $0.0 < $1.0 }
    }

    /// Whether the service can count now.
    public var isDatabaseReached: Bool { text("database") != "down" }
}
