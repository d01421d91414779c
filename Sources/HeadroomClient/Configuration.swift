import LineProtocol

/// What to do when no endpoint answers before the deadline.
public enum UnreachablePolicy: String, Sendable, CaseIterable {
    /// Throw an error.
    case deny
    /// Let the message through uncounted: the decision's status is `isDegraded`, the client logs a warning and counts
    /// it in `headroom_client_degraded_total`.
    case allow
}

extension HeadroomClient {
    /// Where the service is, and how to send requests to it.
    public struct Configuration: Sendable {
        /// Instances of one service, which share a database; at least one, the nearest first. The first reachable one
        /// is used, the next one when it fails or drains, and the first again once it answers.
        public var endpoints: [Endpoint]
        /// Whether each client prefers the endpoints in an order of its own, chosen at random, so that many backends
        /// with one configuration spread over all instances.
        public var spread = false
        #if TLS
        /// How to connect with TLS; nil is plain text.
        public var tls: TLS?
        #endif
        /// The token to authenticate with; nil where none is required.
        public var credentials: Credentials?
        /// Connections to the endpoint in use (1 to 64). One is enough for tens of thousands of requests a second.
        public var connectionsPerEndpoint = 1
        /// The time for a request, retries included, after which it fails (1 ms to 1 h).
        public var deadline: Duration = .seconds(2)
        /// The time after which a request without an answer is sent again to another endpoint, if it can be repeated (1
        /// ms to 1 h). A connection that received nothing in this time is closed.
        public var attemptTimeout: Duration = .seconds(1)
        /// The time for an attempt to connect, TLS and authentication included (1 ms to 1 h).
        public var connectTimeout: Duration = .seconds(1)
        /// The pause before the first retry. Each retry doubles it up to the upper bound; up to half of it is taken off
        /// at random, so that clients do not retry all at once (1 ms to 1 min).
        public var backoff: ClosedRange<Duration> = .milliseconds(25)...(.seconds(1))
        /// What to do when there is no answer.
        public var whenUnreachable = UnreachablePolicy.deny
        /// The number of requests that may wait for answers (1 to 1,048,576); one more fails at once.
        public var requestsMaximum = 16_384
        /// The time for which a shutdown waits for accepted requests (0 s to 1 h).
        public var shutdownTimeout: Duration = .seconds(10)

        /// Makes a configuration for connections in plain text.
        public init(endpoints: [Endpoint], credentials: Credentials? = nil) {
            self.endpoints = endpoints
            self.credentials = credentials
        }

        #if TLS
        /// Makes a configuration for connections with TLS; nil is plain text.
        public init(endpoints: [Endpoint], tls: TLS?, credentials: Credentials? = nil) {
            self.init(endpoints: endpoints, credentials: credentials)
            self.tls = tls
        }
        #endif

        /// One endpoint in plain text, without a token.
        public init(host: String = "127.0.0.1", port: Int = Endpoint.defaultPort) {
            self.init(endpoints: [Endpoint(host: host, port: port)])
        }
    }

    /// Where an instance of the service listens.
    public struct Endpoint: Sendable, Hashable, CustomStringConvertible {
        public static let defaultPort = 6747

        public var host: String
        public var port: Int

        public init(host: String, port: Int = Endpoint.defaultPort) {
            self.host = host
            self.port = port
        }

        /// - Parameter text: `host:port`, `host`, or `[::1]:port`. Nil for anything else.
        public init?(_ text: String) {
            let hasPort = text.hasPrefix("[") ? !text.hasSuffix("]") : text.contains(":")
            let colon = hasPort ? text.lastIndex(of: ":") : nil
            var host = colon.map { text[..<$0] } ?? text[...]
            let port = colon.map { UInt16(text[text.index(after: $0)...]) } ?? UInt16(Endpoint.defaultPort)
            if host.hasPrefix("["), host.hasSuffix("]") {
                host = host.dropFirst().dropLast()
            } else if host.contains(":") {
                return nil
            }
            guard let port, port > 0, !host.isEmpty else { return nil }
            self.init(host: String(host), port: Int(port))
        }

        public var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
    }
}

extension HeadroomClient.Configuration {
    /// The configuration with the endpoints in the order in which this client prefers them.
    var ordered: Self {
        var configuration = self
        if spread { configuration.endpoints.shuffle() }
        return configuration
    }

    var withOneConnection: Self {
        var configuration = self
        configuration.connectionsPerEndpoint = 1
        return configuration
    }

    /// Stops the process if a value is out of range: that is a programming error.
    func check() {
        let hour: Duration = .seconds(3_600)
        precondition(!endpoints.isEmpty, "a client needs at least one endpoint")
        precondition(endpoints.allSatisfy { (1...65_535).contains($0.port) }, "an endpoint's port must be 1 to 65535")
        precondition((1...64).contains(connectionsPerEndpoint), "connectionsPerEndpoint must be 1 to 64")
        for duration in [deadline, attemptTimeout, connectTimeout] {
            precondition((.milliseconds(1)...hour).contains(duration), "times must be 1 ms to 1 h")
        }
        precondition(backoff.lowerBound >= .milliseconds(1), "backoff must begin with 1 ms or more")
        precondition(backoff.upperBound <= .seconds(60), "backoff must end with 1 min or less")
        precondition((1...1_048_576).contains(requestsMaximum), "requestsMaximum must be 1 to 1,048,576")
        precondition((.zero...hour).contains(shutdownTimeout), "shutdownTimeout must be 0 s to 1 h")
    }
}
