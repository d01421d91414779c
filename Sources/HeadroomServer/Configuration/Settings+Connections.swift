/// Settings of the line protocol: its address, and the limits and timeouts of its connections. Some timeouts also apply
/// to HTTP.
extension Settings {
    public static let listen = Setting<ListenAddress>(
        "listen",
        default: "127.0.0.1:6747",
        "address of the line protocol; port 0 picks a free one, printed at start"
    )
    static let eventLoops = Setting<Int>("event-loops", default: 1, 1...64, "threads that serve connections")
    static let connectionsMaximum = Setting<Int>(
        "connections-maximum",
        default: 4_096,
        1...1_000_000,
        "open connections; one more is answered -OVERLOADED and closed"
    )
    static let connectionsPerAddressMaximum = Setting<Int?>(
        "connections-per-address-maximum",
        1...1_000_000,
        "open connections from one address, for IPv6 from its /64 network; one more is answered -OVERLOADED and "
            + "closed. Not set: connections-maximum"
    )
    static let inFlightMaximum = Setting<Int>(
        "in-flight-maximum",
        default: 1_024,
        1...65_536,
        unit: "requests",
        "unanswered requests of one connection; the service reads no more until some are answered"
    )
    static let subscriptionsMaximum = Setting<Int>(
        "subscriptions-maximum",
        default: 1_024,
        1...1_000_000,
        "users that one connection may subscribe to; one more is answered -BADARG"
    )
    static let requestBytesMaximum = Setting<Int>(
        "request-bytes-maximum",
        default: 1_024,
        128...65_536,
        unit: "bytes",
        "size of one request without its line end; a larger one is answered -TOOLONG"
    )
    static let requestArgumentsMaximum = Setting<Int>(
        "request-arguments-maximum",
        default: 16,
        8...64,
        "arguments of one request, the verb included; a request with more is answered -TOOLONG"
    )
    static let outputBytesMaximum = Setting<Int>(
        "output-bytes-maximum",
        default: 1_048_576,
        65_536...67_108_864,
        unit: "bytes",
        "unsent replies of one connection; with more it is closed"
    )
    static let outputTimeout = Setting<Duration>(
        "output-timeout-ms",
        default: 10_000,
        100...3_600_000,
        "a connection whose peer reads no replies for this long is closed, also over HTTP"
    )
    static let idleTimeout = Setting<Duration>(
        "idle-timeout-ms",
        default: 300_000,
        1_000...86_400_000,
        "a connection without a complete request for this long is closed"
    )
    static let firstRequestTimeout = Setting<Duration>(
        "first-request-timeout-ms",
        default: 10_000,
        100...3_600_000,
        "a new connection without a complete request for this long is closed; over HTTP, without a complete head"
    )
    static let incompleteRequestTimeout = Setting<Duration>(
        "incomplete-request-timeout-ms",
        default: 10_000,
        100...3_600_000,
        "a connection whose request stays incomplete for this long is closed; over HTTP, whose head does"
    )
    static let drainTimeout = Setting<Duration>(
        "drain-timeout-ms",
        default: 8_000,
        100...600_000,
        "after SIGTERM or SIGINT, connections still open after this long are cut; a connection that the service ends "
            + "is kept this long at most if its peer goes on sending"
    )

    static let ofConnections: [any SettingDefinition] = [
        listen, eventLoops, connectionsMaximum, connectionsPerAddressMaximum, inFlightMaximum, subscriptionsMaximum,
        requestBytesMaximum, requestArgumentsMaximum, outputBytesMaximum, outputTimeout, idleTimeout,
        firstRequestTimeout, incompleteRequestTimeout, drainTimeout,
    ]
}
