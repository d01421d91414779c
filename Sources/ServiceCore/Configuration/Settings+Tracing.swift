import LineProtocol

/// The settings of traces (docs/tracing.md).
extension Settings {
    static let tracingURL = Setting<String?>(
        requestURL: "tracing-url",
        "where traces are sent: the address of a collector that takes OTLP over HTTP in JSON, with its path, such as "
            + "http://127.0.0.1:4318/v1/traces. If it is not set, nothing is traced"
    )
    static let tracingHeaders = Setting<[Secret]>(
        "tracing-headers",
        "header fields for the collector, such as a token: name=value, separated by commas. Set the environment "
            + "variable or tracing-headers-file instead of the flag"
    )
    package static let tracingHeadersFile = Setting<String?>(
        "tracing-headers-file",
        "path",
        "file with the fields of tracing-headers, one per line"
    )
    static let tracingSampled = Setting<Int>(
        "tracing-sampled-percent",
        default: 100,
        0...100,
        unit: "%",
        "share of the requests of the API and of webhooks that are traced although they have no traceparent. One with "
            + "traceparent is traced if its caller traces it"
    )
    static let tracingSlow = Setting<Duration>(
        "tracing-slow-ms",
        default: 100,
        0...60_000,
        "a request whose answer took at least this long is traced, over both ports, without traceparent too; at most one "
            + "of each batch. 0: none"
    )

    public static let ofTracing: [any SettingDefinition] = [
        tracingURL, tracingHeaders, tracingHeadersFile, tracingSampled, tracingSlow,
    ]
}
