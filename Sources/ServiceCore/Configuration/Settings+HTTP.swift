/// The HTTP server.
extension Settings {
    package static let http = Setting<ListenAddress?>(
        "http",
        default: "127.0.0.1:6748",
        "the HTTP server's address and port: webhooks, metrics, health checks, JSON API, dashboard. If it is not set "
            + "and the default port is in use, there is no HTTP"
    )
    static let httpTLS = Setting<Bool>(
        "http-tls",
        (true, "on"),
        (false, "off"),
        "on: the HTTP server uses TLS if tls-certificate is set; off: never. It asks for no client certificates"
    )
    static let httpOrigins = Setting<Set<String>>(
        origins: "http-origins",
        "origins of other sites' pages that may call /v1 (CORS). Visitors can read a page's token: give it the scope "
            + "dashboard at most"
    )
    static let httpConnectionsMaximum = Setting<Int>(
        "http-connections-maximum",
        default: 256,
        1...65_536,
        "maximum open HTTP connections. For one more, the connection that has waited longest for a request is closed. "
            + "While all are busy, a quarter more, at most 64, are accepted: there /healthz and /readyz are answered, "
            + "and other requests get 503"
    )
    static let httpConnectionsPerAddressMaximum = Setting<Int?>(
        "http-connections-per-address-maximum",
        1...65_536,
        "maximum open HTTP connections from one IP address (IPv6: one /64 network). Beyond it, as beyond "
            + "http-connections-maximum"
    )
    static let httpBodyBytesMaximum = Setting<Int>(
        "http-body-bytes-maximum",
        default: 262_144,
        1_024...16_777_216,
        unit: "bytes",
        "maximum size of a request's body; a larger one is answered 413"
    )
    static let httpRequestTimeout = Setting<Duration>(
        "http-request-timeout-ms",
        default: 10_000,
        100...600_000,
        "maximum time to receive a request's body (else 408), and to process the request (else 503)"
    )
    static let httpIdleTimeout = Setting<Duration>(
        "http-idle-timeout-ms",
        default: 60_000,
        1_000...3_600_000,
        "an HTTP connection is closed if it sends nothing for this long while a request is awaited"
    )

    public static let ofHTTP: [any SettingDefinition] = [
        http, httpTLS, httpOrigins, httpConnectionsMaximum, httpConnectionsPerAddressMaximum, httpBodyBytesMaximum,
        httpRequestTimeout, httpIdleTimeout,
    ]
}
