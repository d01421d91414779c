/// The settings of the line protocol: its address, and the limits and timeouts of its connections. Some timeouts also
/// apply to HTTP.
package struct ConnectionSettings: SettingGroup {
    package let listen = Setting("listen", default: "127.0.0.1:6747", .address) {
        "the line protocol's address and port. With port 0 the system chooses one, which is printed at the start"
    }
    package let reusesPort = Setting("reuse-port", default: "off", .words([("off", false), ("on", true)])) {
        "whether another instance of the same user may open listen and http as well (SO_REUSEPORT), to serve before "
            + "this one ends. Both must have it on"
    }
    package let eventLoops = Setting("event-loops", default: 1, .number(1...64)) {
        "threads that serve the line protocol"
    }
    package let connectionsMaximum = Setting("connections-maximum", default: 4_096, .number(1...1_000_000)) {
        "maximum open connections of the line protocol; one more is answered -OVERLOADED and closed"
    }
    package let connectionsPerAddressMaximum = Setting("connections-per-address-maximum", .number(1...1_000_000)) {
        "maximum open connections of the line protocol from one IP address (IPv6: one /64 network); one more is "
            + "answered -OVERLOADED and closed"
    }
    package let inFlightMaximum = Setting("in-flight-maximum", default: 1_024, .number(1...65_536, "requests")) {
        "maximum unanswered requests of a connection; no more are read from it until some are answered"
    }
    package let subscriptionsMaximum = Setting("subscriptions-maximum", default: 1_024, .number(1...1_000_000)) {
        "maximum users that a connection may subscribe to; one more is answered -BADARG"
    }
    package let requestBytesMaximum = Setting("request-bytes-maximum", default: 1_024, .number(128...65_536, "bytes")) {
        "maximum size of a request, without its line end. Beyond it: -TOOLONG, and the connection is closed"
    }
    package let requestArgumentsMaximum = Setting("request-arguments-maximum", default: 16, .number(8...64)) {
        "maximum arguments of a request, including the verb. Beyond it: -TOOLONG, and the connection is closed"
    }
    package let outputBytesMaximum =
        Setting("output-bytes-maximum", default: 1_048_576, .number(65_536...67_108_864, "bytes")) {
            "maximum size of a connection's unsent replies; beyond it the connection is closed"
        }
    package let outputTimeout = Setting("output-timeout-ms", default: 10_000, .milliseconds(100...3_600_000)) {
        "a connection is closed if its client reads no replies for this long, also over HTTP"
    }
    package let idleTimeout = Setting("idle-timeout-ms", default: 300_000, .milliseconds(1_000...86_400_000)) {
        "a connection without subscriptions is closed if it sends no complete request for this long"
    }
    package let firstRequestTimeout =
        Setting("first-request-timeout-ms", default: 10_000, .milliseconds(100...3_600_000)) {
            "a new connection is closed if its first request (over HTTP: the headers) is not complete within this time"
        }
    package let incompleteRequestTimeout =
        Setting("incomplete-request-timeout-ms", default: 10_000, .milliseconds(100...3_600_000)) {
            "a connection is closed if a request (over HTTP: its headers) is not complete within this time after its "
                + "first byte"
        }
    package let drainDelay = Setting("drain-delay-ms", default: 0, .milliseconds(0...600_000)) {
        "how long the ports serve on after SIGTERM or SIGINT, while /readyz answers 503; then drain-timeout-ms begins"
    }
    package let drainTimeout = Setting("drain-timeout-ms", default: 8_000, .milliseconds(100...600_000)) {
        "how long connections may take to end once the ports are closed; then they are closed. Also the longest time "
            + "that a connection stays open after its last reply while its client keeps sending"
    }
}
