import ArgumentParser
import HeadroomClient

/// A model that users may choose.
struct ModelChoice: Sendable {
    /// As the model's API and Headroom know it. Nil if the product has one model without a name.
    let name: ModelName?
    /// What users read.
    let label: String
    let model: any Model
}

extension ModelChoice: Encodable {
    private enum CodingKeys: CodingKey {
        case name, label
    }

    func encode(to encoder: any Encoder) throws {
        var fields = encoder.container(keyedBy: CodingKeys.self)
        try fields.encode(name?.text, forKey: .name)
        try fields.encode(label, forKey: .label)
    }
}

/// `NAME`, or `NAME=LABEL` with what users read.
struct LabelledModel: ExpressibleByArgument {
    let name: ModelName
    let label: String

    init?(argument: String) {
        let parts = argument.split(separator: "=", maxSplits: 1)
        guard let first = parts.first, let name = ModelName(String(first)) else { return nil }
        self.name = name
        label = String(parts.last ?? first)
    }
}

extension HeadroomClient {
    /// The usage for a page, with the answer that a message with each of the models would get now.
    ///
    /// - Parameter deadline: for each request; nil is the client's.
    func usage(
        of user: UserID,
        with models: [ModelChoice],
        deadline: Duration? = nil
    ) async throws(HeadroomError) -> UsageObject {
        var usage = UsageObject(status: try await usage(of: user, deadline: deadline), language: language)
        for case let name? in models.map(\.name) {
            let decision = try await check(user, model: name, deadline: deadline)
            usage.models[name.text] = UsageObject(status: decision.status, language: language)
        }
        return usage
    }
}
