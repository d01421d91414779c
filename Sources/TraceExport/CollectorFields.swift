import ServiceCore

/// The header fields that a collector wants, such as a token.
struct CollectorFields {
    let fields: [(name: String, value: String)]

    /// Reads the file of fields.
    init(_ settings: SettingValues<TracingSettings>) throws(SettingFile.Unusable) {
        try self.init(settings.headers.texts())
    }

    /// - Parameter texts: `name=value`.
    init(_ texts: [String]) throws(SettingFile.Unusable) {
        var fields: [(name: String, value: String)] = []
        for text in texts {
            let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            // The name is a token of RFC 9110, and the value has only bytes that a field's value may have.
            guard parts.count == 2, let name = parts.first, let value = parts.last,
                name.wholeMatch(of: /[A-Za-z0-9!#$%&'*+.^_`|~-]+/) != nil, !value.isEmpty,
                value.utf8.allSatisfy({ $0 == 0x09 || (0x20...0x7E).contains($0) })
            else {
                throw SettingFile.Unusable(
                    description: """
                        tracing-headers (HEADROOM_TRACING_HEADERS) must be names and values of HTTP header fields, as \
                        name=value, separated by commas
                        """
                )
            }
            fields.append((String(name), String(value)))
        }
        self.fields = fields
    }
}
