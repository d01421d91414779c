/// The settings of the HTTP server.
package struct HTTPSettings: SettingGroup {
    package let address = Setting<ListenAddress?>("http", default: "127.0.0.1:6748", .addressOrOff) {
        "the HTTP server's address and port: webhooks, metrics, health checks, JSON API, dashboard. If it is not set "
            + "and the default port is in use, there is no HTTP"
    }
    package let usesTLS = Setting("http-tls", default: "on", .words([("on", true), ("off", false)])) {
        "on: the HTTP server uses TLS if tls-certificate is set; off: never. It asks for no client certificates"
    }
    package let origins = Setting("http-origins", .origins) {
        "origins of other sites' pages that may call /v1 (CORS). Visitors can read a page's token: give it the scope "
            + "dashboard at most"
    }
    package let connectionsMaximum = Setting("http-connections-maximum", default: 256, .number(1...65_536)) {
        "maximum open HTTP connections. For one more, the connection that has waited longest for a request is closed. "
            + "While all are busy, a quarter more, at most 64, are accepted: there /healthz and /readyz are answered, "
            + "and other requests get 503"
    }
    package let connectionsPerAddressMaximum = Setting("http-connections-per-address-maximum", .number(1...65_536)) {
        "maximum open HTTP connections from one IP address (IPv6: one /64 network). Beyond it, as beyond "
            + "http-connections-maximum"
    }
    package let bodyBytesMaximum =
        Setting("http-body-bytes-maximum", default: 262_144, .number(1_024...16_777_216, "bytes")) {
            "maximum size of a request's body; a larger one is answered 413"
        }
    package let requestTimeout = Setting("http-request-timeout-ms", default: 10_000, .milliseconds(100...600_000)) {
        "maximum time to receive a request's body (else 408), and to process the request (else 503)"
    }
    package let idleTimeout = Setting("http-idle-timeout-ms", default: 60_000, .milliseconds(1_000...3_600_000)) {
        "an HTTP connection is closed if it sends nothing for this long while a request is awaited"
    }
}
