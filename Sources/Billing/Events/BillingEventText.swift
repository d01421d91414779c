#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension BillingEvent {
    /// JSON, as `headroom.take_store_notification` takes it.
    public var jsonText: String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        do {
            return String(decoding: try encoder.encode(self), as: UTF8.self)
        } catch {
            // Everything in it has a form in JSON: numbers that have none are refused where payloads are read.
            preconditionFailure("a store notification has no JSON form: \(error)")
        }
    }
}
