@testable import Billing

/// A text is a value within the bounds, or refused in words of ours, and only UTF-8 is read. `billing` also compares what is
/// written back; without that this has several times as many inputs a second.
///
/// The input: the text.
enum JSONBody {
    @Sendable
    static func check(_ text: [UInt8]) throws(Violation) {
        let isUTF8 = !text.contains(0) && String(validating: text, as: UTF8.self) != nil
        switch BillingBody.attempt({ () throws(BillingError) in try JSONValue(parsing: text) }) {
        case .failure(let error):
            try BillingBody.checkRefusal(error)
            try require((error.kind == .encoding) == !isUTF8, "\(error) of bytes that are UTF-8: \(isUTF8)")
        case .success(let value):
            try require(isUTF8, "read, and no UTF-8")
            // Each value but a single digit is two bytes at least, with what separates it from the next.
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
