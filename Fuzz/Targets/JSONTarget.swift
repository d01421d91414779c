import JSON

/// A text is parsed to a value within the limits, or refused, and only UTF-8 is accepted. Compares no values, unlike
/// `billing`, and so tests several times as many inputs per second.
///
/// The input: the text.
enum JSONTarget {
    @Sendable
    static func check(_ text: [UInt8]) throws(Violation) {
        let isUTF8 = !text.contains(0) && String(validating: text, as: UTF8.self) != nil
        switch BillingTarget.attempt({ () throws(JSONError) in try JSONValue(parsing: text) }) {
        case .failure(let error):
            try BillingTarget.checkRefusal(error)
            try require((error.kind == .encoding) == !isUTF8, "\(error) of bytes that are UTF-8: \(isUTF8)")
        case .success(let value):
            try require(isUTF8, "accepted, but not UTF-8")
            // A value and its separator have at least two bytes, but for a single digit.
            try require(count(value) <= text.count, "\(count(value)) values in \(text.count) bytes")
        }
    }

    private static func count(_ value: JSONValue) -> Int {
        switch value {
        case .object(let members): members.values.reduce(1) { $0 + count($1) }
        case .array(let elements): elements.reduce(1) { $0 + count($1) }
        default: 1
        }
    }
}
