import JSON
import NIOCore
import StoreEvents

/// The body of `POST /v1/users/{user}/links`.
struct LinkRequest: Equatable {
    private static let reasonBytesMaximum = 1_024

    let source: String
    /// A transaction, or the store's id of a customer.
    let name: String
    /// The audit log shows it with the link.
    let reason: String?

    /// - Throws: 400.
    init(_ body: ByteBuffer) throws(Problem) {
        let members = try JSONValue.members(of: body, named: ["source", "name", "reason"])
        source = try LinkRequest.text("source", members) ?? ""
        guard DirectEvent.isSource(source) else {
            throw .badArgument("source must be \(Stores.names), or the name that a billing system's events have")
        }
        name = try LinkRequest.text("name", members) ?? ""
        guard (1...255).contains(name.unicodeScalars.count) else {
            throw .badArgument("name must be a transaction, or a customer's id, of 1 to 255 characters")
        }
        reason = try LinkRequest.text("reason", members)
        guard reason.map({ (1...LinkRequest.reasonBytesMaximum).contains($0.utf8.count) }) ?? true else {
            throw .badArgument("reason must have 1 to \(LinkRequest.reasonBytesMaximum) bytes")
        }
    }

    private static func text(_ name: String, _ members: [String: JSONValue]) throws(Problem) -> String? {
        switch members[name] {
        case nil: return nil
        case .string(let text)?:
            let isPrintable = text.unicodeScalars.allSatisfy { $0.value >= 0x20 && !(0x7F...0x9F).contains($0.value) }
            guard isPrintable else { throw .badArgument("\(name) must have no control characters") }
            return text
        default: throw .badArgument("\(name) must be a text")
        }
    }
}
