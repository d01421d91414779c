import Billing
import JSON

extension JSONValue {
    /// - Parameter name: what the sender knows the text as.
    init(received text: [UInt8], as name: String = "the body") throws(BillingError) {
        do {
            self = try JSONValue(parsing: text)
        } catch {
            let kind: BillingError.Kind =
                switch error.kind {
                case .malformed: .malformed
                case .encoding: .encoding
                case .tooLarge: .tooLarge
                }
            throw BillingError(kind, "\(name) \(error)")
        }
    }
}
