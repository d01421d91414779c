/// Settings of the line protocol: its address, and the limits and timeouts of its connections. Some timeouts also apply
/// to HTTP.
extension Settings {
    public static let listen = Setting<ListenAddress>(
        "listen",
        default: "127.0.0.1:6747",
        "the line protocol's address and port. With port 0 the system chooses one, which is printed at the start"
    )
    static let reusesPort = Setting<Bool>(
        "reuse-port",
        (false, "off"),
        (true, "on"),
        "whether another instance of the same user may open listen and http as well (SO_REUSEPORT), to serve before "
            + "this one ends. Both must have it on"
    )
    static let eventLoops = Setting<Int>(
        "event-loops",
        default: 1,
        1...64,
        "threads that serve the line protocol"
    )
    static let connectionsMaximum = Setting<Int>(
        "connections-maximum",
        default: 4_096,
        1...1_000_000,
        "maximum open connections of the line protocol; one more is answered -OVERLOADED and closed"
    )
    static let connectionsPerAddressMaximum = Setting<Int?>(
        "connections-per-address-maximum",
        1...1_000_000,
        "maximum open connections of the line protocol from one IP address (IPv6: one /64 network); one more is "
            + "answered -OVERLOADED and closed"
    )
    static let inFlightMaximum = Setting<Int>(
        "in-flight-maximum",
        default: 1_024,
        1...65_536,
        unit: "requests",
        "maximum unanswered requests of a connection; no more are read from it until some are answered"
    )
    static let subscriptionsMaximum = Setting<Int>(
        "subscriptions-maximum",
        default: 1_024,
        1...1_000_000,
        "maximum users that a connection may subscribe to; one more is answered -BADARG"
    )
    static let requestBytesMaximum = Setting<Int>(
        "request-bytes-maximum",
        default: 1_024,
        128...65_536,
        unit: "bytes",
        "maximum size of a request, without its line end. Beyond it: -TOOLONG, and the connection is closed"
    )
    static let requestArgumentsMaximum = Setting<Int>(
        "request-arguments-maximum",
        default: 16,
        8...64,
        "maximum arguments of a request, including the verb. Beyond it: -TOOLONG, and the connection is closed"
    )
    static let outputBytesMaximum = Setting<Int>(
        "output-bytes-maximum",
        default: 1_048_576,
        65_536...67_108_864,
        unit: "bytes",
        "maximum size of a connection's unsent replies; beyond it the connection is closed"
    )
    static let outputTimeout = Setting<Duration>(
        "output-timeout-ms",
        default: 10_000,
        100...3_600_000,
        "a connection is closed if its client reads no replies for this long, also over HTTP"
    )
    static let idleTimeout = Setting<Duration>(
        "idle-timeout-ms",
        default: 300_000,
        1_000...86_400_000,
        "a connection without subscriptions is closed if it sends no complete request for this long"
    )
    static let firstRequestTimeout = Setting<Duration>(
        "first-request-timeout-ms",
        default: 10_000,
        100...3_600_000,
        "a new connection is closed if its first request (over HTTP: the headers) is not complete within this time"
    )
    static let incompleteRequestTimeout = Setting<Duration>(
        "incomplete-request-timeout-ms",
        default: 10_000,
        100...3_600_000,
        "a connection is closed if a request (over HTTP: its headers) is not complete within this time after its first "
            + "byte"
    )
    static let drainDelay = Setting<Duration>(
        "drain-delay-ms",
        default: 0,
        0...600_000,
        "how long the ports serve on after SIGTERM or SIGINT, while /readyz answers 503; then drain-timeout-ms begins"
    )
    static let drainTimeout = Setting<Duration>(
        "drain-timeout-ms",
        default: 8_000,
        100...600_000,
        "how long connections may take to end once the ports are closed; then they are closed. Also the longest time "
            + "that a connection stays open after its last reply while its client keeps sending"
    )

    public static let ofConnections: [any SettingDefinition] = [
        listen, reusesPort, eventLoops, connectionsMaximum, connectionsPerAddressMaximum, inFlightMaximum,
        subscriptionsMaximum, requestBytesMaximum, requestArgumentsMaximum, outputBytesMaximum, outputTimeout,
        idleTimeout, firstRequestTimeout, incompleteRequestTimeout, drainDelay, drainTimeout,
    ]
}
