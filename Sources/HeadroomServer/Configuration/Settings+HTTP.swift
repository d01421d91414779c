/// The HTTP server.
extension Settings {
    package static let http = Setting<ListenAddress?>(
        "http",
        default: "127.0.0.1:6748",
        "address of the HTTP server: webhooks, metrics, health, dashboard. If it is not set and the port is in use, the "
            + "service runs without HTTP"
    )
    static let httpTLS = Setting<Bool>(
        "http-tls",
        (true, "on"),
        (false, "off"),
        "whether the HTTP server speaks TLS where tls-certificate is set; it never asks for client certificates"
    )
    static let httpConnectionsMaximum = Setting<Int>(
        "http-connections-maximum",
        default: 256,
        1...65_536,
        "open connections of the HTTP server; one more closes the one that has waited longest for a request. Up to 64 further "
            + "connections, at most a quarter of this number, are accepted while this many are busy: /healthz and /readyz are "
            + "answered on them, other requests with 503"
    )
    static let httpConnectionsPerAddressMaximum = Setting<Int?>(
        "http-connections-per-address-maximum",
        1...65_536,
        "the same for connections from one address, for IPv6 from its /64 network. Not set: http-connections-maximum"
    )
    static let httpBodyBytesMaximum = Setting<Int>(
        "http-body-bytes-maximum",
        default: 262_144,
        1_024...16_777_216,
        unit: "bytes",
        "size of a request's body over HTTP; a larger one is answered 413"
    )
    static let httpRequestTimeout = Setting<Duration>(
        "http-request-timeout-ms",
        default: 10_000,
        100...600_000,
        "an HTTP request that is not read and answered within this time is answered 408 or 503"
    )
    static let httpIdleTimeout = Setting<Duration>(
        "http-idle-timeout-ms",
        default: 60_000,
        1_000...3_600_000,
        "an HTTP connection on which nothing is sent for this long is closed"
    )

    static let ofHTTP: [any SettingDefinition] = [
        http, httpTLS, httpConnectionsMaximum, httpConnectionsPerAddressMaximum, httpBodyBytesMaximum,
        httpRequestTimeout,
        httpIdleTimeout,
    ]
}
