/// The settings of traces (docs/tracing.md).
package struct TracingSettings: SettingGroup {
    package let url = Setting("tracing-url", .requestURL) {
        "where traces are sent: the address of a collector that takes OTLP over HTTP in JSON, with its path, such as "
            + "http://127.0.0.1:4318/v1/traces. If it is not set, nothing is traced"
    }
    package let headers = Setting<Secrets>("tracing-headers", file: "fields") {
        "header fields for the collector, such as a token: name=value, separated by commas. Set the environment "
            + "variable or tracing-headers-file instead of the flag"
    }
    package let sampledPercent = Setting("tracing-sampled-percent", default: 100, .number(0...100, "%")) {
        "share of the requests of the API and of webhooks that are traced although they have no traceparent. One with "
            + "traceparent is traced if its caller traces it"
    }
    package let slowTime = Setting("tracing-slow-ms", default: 100, .milliseconds(0...60_000)) {
        "a request whose answer took at least this long is traced, over both ports, without traceparent too; at most "
            + "one of each batch. 0: none"
    }

    package static func check(_ values: SettingValues<TracingSettings>) throws(InvalidSetting) {
        guard let url = values.url, !values.headers.isEmpty, !RequestURL.isLocalOrSecure(url) else { return }
        throw InvalidSetting(
            text: """
                tracing-headers are secret: with them, tracing-url must be an https URL, or an http URL of this machine
                """
        )
    }
}
