/// One thing that an operator can set: by the flag `--name`, or the environment variable `HEADROOM_NAME`.
///
/// The list is the one place that says which settings there are; `--help`, the documentation and the parser are held
/// against it.
public struct Setting: Sendable, Equatable {
    public let name: String
    /// As text; nil where there is none.
    public let defaultValue: String?
    /// What may be said: a list of words, or a range with its unit.
    public let range: String
    public let meaning: String

    /// `HEADROOM_SOME_NAME`
    public var environmentName: String {
        "HEADROOM_" + name.uppercased().replacing("-", with: "_")
    }

    init(_ name: String, default defaultValue: String?, _ range: String, _ meaning: String) {
        self.name = name
        self.defaultValue = defaultValue
        self.range = range
        self.meaning = meaning
    }
}

extension Setting {
    public static let listen = Setting(
        "listen",
        default: "127.0.0.1:6747",
        "host:port",
        "address of the line protocol; port 0 picks a free one, printed at start"
    )
    public static let http = Setting(
        "http",
        default: "127.0.0.1:6748",
        "host:port or off",
        "address of the HTTP side: webhooks, metrics, health, dashboard; where nothing is set and the port is taken, the "
            + "service runs without"
    )
    public static let httpTLS = Setting(
        "http-tls",
        default: "on",
        "on or off",
        "whether the HTTP side speaks TLS where tls-certificate is set; it never asks for client certificates"
    )
    public static let httpConnectionsMaximum = Setting(
        "http-connections-maximum",
        default: "256",
        "1 to 65536",
        "open connections of the HTTP side; one more closes the one that has waited longest for a request. Busy "
            + "connections leave a quarter as many places to others, 64 at most, beyond this number if necessary. While this "
            + "many are busy, others are answered /healthz and /readyz, and else 503"
    )
    public static let httpConnectionsPerAddress = Setting(
        "http-connections-per-address-maximum",
        default: nil,
        "1 to 65536",
        "the same for those from one address, an IPv6 one with all of its /64 network. Without it, as many as "
            + "http-connections-maximum"
    )
    public static let httpBodyMaximum = Setting(
        "http-body-maximum-bytes",
        default: "262144",
        "1024 to 16777216 bytes",
        "size of a request's body on the HTTP side; more is answered 413"
    )
    public static let httpRequestTimeout = Setting(
        "http-request-timeout-ms",
        default: "10000",
        "100 to 600000 ms",
        "a request of the HTTP side that is not read and answered by then is answered 408 or 503"
    )
    public static let httpIdleTimeout = Setting(
        "http-idle-timeout-ms",
        default: "60000",
        "1000 to 3600000 ms",
        "a connection of the HTTP side on which nothing is sent for so long is closed"
    )
    public static let databaseURL = Setting(
        "database-url",
        default: nil,
        "libpq connection string or URI",
        "the PostgreSQL to use, 14 or later; DATABASE_URL is read too. Without one a private PostgreSQL is started in "
            + "data-dir. May hold a password: prefer the environment to the flag, or a passfile"
    )
    public static let dataDirectory = Setting(
        "data-dir",
        default: ".headroom",
        "path",
        "home of the private PostgreSQL"
    )
    public static let unknownUsers = Setting(
        "unknown-users",
        default: "trial",
        "trial, free or deny",
        "what a user without a plan gets: the trial, which starts with the first counted message, the free plan's "
            + "allowance, or nothing"
    )
    public static let whenUnavailable = Setting(
        "when-unavailable",
        default: "deny",
        "deny or allow",
        "what CONSUME and CHECK answer while the database is away: -UNAVAILABLE, or +ALLOWED degraded=1, uncounted"
    )
    public static let logLevel = Setting(
        "log-level",
        default: "info",
        "trace, debug, info, notice, warning, error or critical",
        "what is written to standard error, nothing per request above debug; of commands but serve: warning"
    )
    public static let lanes = Setting(
        "lanes",
        default: "2",
        "1 to 64",
        "database connections that carry batches, each with a thread"
    )
    public static let eventLoops = Setting(
        "event-loops",
        default: "1",
        "1 to 64",
        "threads that serve connections"
    )
    public static let batchMaximum = Setting(
        "batch-maximum",
        default: "512",
        "1 to 4096 requests",
        "requests that one statement carries at most"
    )
    public static let queueCapacity = Setting(
        "queue-capacity",
        default: "65536",
        "64 to 1048576 requests",
        "requests that may wait for the database in all; one more is answered -OVERLOADED"
    )
    public static let requestTimeout = Setting(
        "request-timeout-ms",
        default: "2000",
        "100 to 60000 ms",
        "a request is answered by then, whatever the database does"
    )
    public static let connectTimeout = Setting(
        "connect-timeout-ms",
        default: "2000",
        "100 to 60000 ms",
        "how long one attempt to connect to the database may take"
    )
    public static let reportTimeout = Setting(
        "report-timeout-ms",
        default: "60000",
        "1000 to 3600000 ms",
        "REPORT and TOP, which read the whole table in portions, are answered by then"
    )
    public static let changesPoll = Setting(
        "changes-poll-ms",
        default: "100",
        "10 to 60000 ms",
        "how often it is looked whether a subscribed user has changed"
    )
    public static let subscriptionsMaximum = Setting(
        "subscriptions-maximum",
        default: "1024",
        "1 to 1000000",
        "users that one connection may subscribe to; more is answered -BADARG"
    )
    public static let connectionsMaximum = Setting(
        "connections-maximum",
        default: "4096",
        "1 to 1000000",
        "open connections; one more is answered -OVERLOADED and closed"
    )
    public static let inFlightMaximum = Setting(
        "in-flight-maximum",
        default: "1024",
        "1 to 65536 requests",
        "unanswered requests of one connection, after which no more are read from it"
    )
    public static let requestSize = Setting(
        "request-size-bytes",
        default: "1024",
        "128 to 65536 bytes",
        "size of one request without its line end; more is answered -TOOLONG"
    )
    public static let requestTokens = Setting(
        "request-tokens",
        default: "16",
        "8 to 64",
        "tokens of one request; more is answered -TOOLONG"
    )
    public static let outputBytes = Setting(
        "output-bytes",
        default: "1048576",
        "65536 to 67108864 bytes",
        "unsent replies of one connection; more closes it"
    )
    public static let outputTimeout = Setting(
        "output-timeout-ms",
        default: "10000",
        "100 to 3600000 ms",
        "a connection whose peer takes no replies for so long is closed; over HTTP as well"
    )
    public static let idleTimeout = Setting(
        "idle-timeout-ms",
        default: "300000",
        "1000 to 86400000 ms",
        "a connection without a complete request for so long is closed"
    )
    public static let firstRequestTimeout = Setting(
        "first-request-timeout-ms",
        default: "10000",
        "100 to 3600000 ms",
        "a new connection without a complete request for so long is closed; over HTTP, without a complete head"
    )
    public static let drainTimeout = Setting(
        "drain-timeout-ms",
        default: "8000",
        "100 to 600000 ms",
        "after SIGTERM or SIGINT, connections that are still open after so long are cut; one that the service ends is kept "
            + "for so long at most, where the peer goes on sending"
    )
    public static let keysKeepDays = Setting(
        "keys-keep-days",
        default: "7",
        "7 to 365 days",
        "how long keys are remembered; older ones are forgotten in the background"
    )

    public static let authentication = Setting(
        "authentication",
        default: "auto",
        "auto, required or off",
        "whether requests need a token: as soon as one was ever created, always, or never"
    )
    public static let authenticationTimeout = Setting(
        "authentication-timeout-ms",
        default: "10000",
        "100 to 600000 ms",
        "where a token is required, a connection that brings none for so long is closed"
    )
    public static let connectionsPerTokenMaximum = Setting(
        "connections-per-token-maximum",
        default: "connections-maximum",
        "1 to 1000000",
        "connections that one token may have; one more AUTH is answered -OVERLOADED"
    )
    public static let tlsCertificate = Setting(
        "tls-certificate",
        default: nil,
        "path",
        "PEM file with the service's certificate, then those between it and the CA; the port then speaks TLS only. Read "
            + "again on SIGHUP, as are tls-key and tls-client-ca"
    )
    public static let tlsKey = Setting(
        "tls-key",
        default: nil,
        "path",
        "PEM file with the key of tls-certificate, without a passphrase; set both or neither"
    )
    public static let tlsClientCA = Setting(
        "tls-client-ca",
        default: nil,
        "path",
        "PEM file with CAs; clients must present a certificate of one of them"
    )
    public static let tlsHandshakeTimeout = Setting(
        "tls-handshake-timeout-ms",
        default: "10000",
        "100 to 3600000 ms",
        "a connection whose TLS handshake is not done so long after it was opened is closed"
    )
    public static let trustedNetwork = Setting(
        "trusted-network",
        default: "no",
        "no or yes",
        "yes: listen on an address that others can reach, without TLS or tokens, because the network keeps them away"
    )
    public static let queueWait = Setting(
        "queue-wait-ms",
        default: "500",
        "10 to 30000 ms",
        "a request that would have to wait for longer until the database is asked is answered -OVERLOADED at once; half of "
            + "request-timeout-ms at most"
    )

    public static let connectionsPerAddress = Setting(
        "connections-per-address-maximum",
        default: nil,
        "1 to 1000000",
        "open connections from one address, an IPv6 one with all of its /64 network; one more is answered -OVERLOADED and "
            + "closed. Without it, as many as connections-maximum"
    )
    public static let incompleteRequestTimeout = Setting(
        "incomplete-request-timeout-ms",
        default: "10000",
        "100 to 3600000 ms",
        "a connection that has begun a request and not completed it for so long is closed; over HTTP, its head"
    )

    public static let all: [Setting] =
        [
            listen, http, databaseURL, dataDirectory, unknownUsers, whenUnavailable, logLevel, lanes, eventLoops,
            batchMaximum, queueCapacity, requestTimeout, connectTimeout, connectionsMaximum, inFlightMaximum,
            requestSize,
            requestTokens, outputBytes, outputTimeout, idleTimeout, firstRequestTimeout, drainTimeout,
            keysKeepDays, reportTimeout, changesPoll, subscriptionsMaximum,
            authentication, authenticationTimeout, connectionsPerTokenMaximum, tlsCertificate, tlsKey, tlsClientCA,
            tlsHandshakeTimeout, trustedNetwork, queueWait, connectionsPerAddress, incompleteRequestTimeout,
            httpTLS, httpConnectionsMaximum, httpConnectionsPerAddress, httpBodyMaximum, httpRequestTimeout,
            httpIdleTimeout,
        ] + webhooks
}
