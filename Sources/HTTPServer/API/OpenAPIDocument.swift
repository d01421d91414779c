import Foundation

/// The description of this API: docs/openapi.json.
enum OpenAPIDocument {
    /// Users are UUIDs.
    static let body = TaggedBody(document)
    /// Requests may name a user by any text (the setting user-namespace). Clients that are generated from the
    /// description would refuse other texts than UUIDs.
    static let bodyWithNames = TaggedBody(permittingNames(document))

    private static let document = Data(EmbeddedTexts["openapi.json"].utf8)

    private static func permittingNames(_ document: Data) -> Data {
        guard var root = try? JSONSerialization.jsonObject(with: document) as? [String: Any],
            var components = root["components"] as? [String: Any],
            var schemas = components["schemas"] as? [String: Any]
        else { preconditionFailure("openapi.json is a part of the program") }
        schemas["User"] = [
            "type": "string", "minLength": 1, "maxLength": 255,
            "pattern": #"^(?![.]{1,2}$)[^\u0000-\u0020\u007f-\u009f]+$"#,
            "description": "A UUID, or a name, which stands for the UUID of version 5 of it in the setting "
                + "user-namespace: 1 to 255 bytes of UTF-8 without spaces and control characters, and not . or ..",
        ]
        components["schemas"] = schemas
        root["components"] = components
        let options: JSONSerialization.WritingOptions = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        return (try? JSONSerialization.data(withJSONObject: root, options: options)) ?? document
    }
}

extension TaggedBody {
    fileprivate init(_ document: Data) {
        self.init(document, mediaType: "application/json", caching: "no-cache")
    }
}
