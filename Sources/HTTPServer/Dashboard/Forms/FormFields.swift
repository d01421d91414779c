import LineProtocol

/// Decodes `application/x-www-form-urlencoded`, the encoding of forms, and encodes links.
enum FormFields {
    /// More than any form here has.
    private static let maximum = 16

    /// - Returns: nil if it is malformed or not UTF-8, has a zero byte, repeats a field, or has too many fields.
    static func parse(_ body: some Collection<UInt8>) -> [String: String]? {
        var fields: [String: String] = [:]
        guard !body.isEmpty else { return fields }
        let pairs = body.split(separator: UInt8(ascii: "&"), maxSplits: maximum, omittingEmptySubsequences: false)
        guard pairs.count <= maximum else { return nil }
        for pair in pairs {
            let halves = pair.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
            guard halves.count == 2, let name = PercentDecoding.text(halves[0], plusIsSpace: true),
                let value = PercentDecoding.text(halves[1], plusIsSpace: true),
                fields.updateValue(value, forKey: name) == nil
            else {
                return nil
            }
        }
        return fields
    }

    /// A query with these names and values, without those whose value is nil or empty.
    static func query(_ fields: [(name: String, value: String?)]) -> String {
        fields.compactMap { name, value in
            value.flatMap { $0.isEmpty ? nil : "\(name)=\(encoded($0))" }
        }
        .joined(separator: "&")
    }

    /// For a value in a query.
    static func encoded(_ text: String) -> String {
        text.utf8.reduce(into: "") { text, byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "/"), UInt8(ascii: "-"), UInt8(ascii: "_"):
                text.unicodeScalars.append(Unicode.Scalar(byte))
            default: text += "%" + RandomIdentifier.hexadecimal([byte]).uppercased()
            }
        }
    }
}
