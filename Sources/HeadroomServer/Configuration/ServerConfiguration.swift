import Engine
import LineProtocol
import Logging
import NIOCore
import Postgres
import Usage

/// Everything that can be set, checked.
public struct ServerConfiguration: Sendable {
    /// Where the data is. Printing or dumping it shows no password.
    public enum Database: Sendable, Equatable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable
    {
        /// A libpq connection string or URI; may hold a password.
        case url(String)
        /// A private PostgreSQL, started in this directory.
        case privateServer(dataDirectory: String)

        public var description: String {
            switch self {
            case .url(let url): redacted(conninfo: url)
            case .privateServer(let directory): "private PostgreSQL in \(directory)"
            }
        }

        public var debugDescription: String { description }
        public var customMirror: Mirror { Mirror(self, children: ["database": description]) }
    }

    public var listen: ListenAddress
    /// nil: off.
    public var http: HTTPConfiguration?
    package var webhooks: WebhookConfiguration
    public var database: Database
    public var logLevel: Logger.Level
    public var eventLoops: Int
    public var drainTimeout: Duration
    public var keysKeepDays: Int
    public var authentication: Authentication
    var connectionsPerTokenMaximum: Int
    /// The operator says that only machines that are trusted reach the ports.
    public var networkIsTrusted: Bool
    /// nil: in plain text.
    var tls: TLSFiles?
    var handshakeTimeout: TimeAmount
    var connectionLimits: ConnectionLimits
    /// Without its database URL, which is not known before a private PostgreSQL runs.
    private var store: EngineConfiguration

    public init(_ settings: SettingsReader) throws(SettingsReader.Invalid) {
        listen = try settings.address(.listen)
        http = try HTTPConfiguration(settings)
        webhooks = try WebhookConfiguration(settings)
        database = ServerConfiguration.database(settings)
        logLevel = try settings.choice(.logLevel)
        eventLoops = try settings.number(.eventLoops, 1...64)
        drainTimeout = .milliseconds(try settings.number(.drainTimeout, 100...600_000))
        keysKeepDays = try settings.number(.keysKeepDays, 7...365)
        authentication = try settings.choice(.authentication)
        connectionsPerTokenMaximum = try settings.number(
            .connectionsPerTokenMaximum,
            1...1_000_000,
            like: .connectionsMaximum
        )
        tls = try ServerConfiguration.tls(settings)
        handshakeTimeout = .milliseconds(Int64(try settings.number(.tlsHandshakeTimeout, 100...3_600_000)))
        let trustedNetwork: TrustedNetwork = try settings.choice(.trustedNetwork)
        networkIsTrusted = trustedNetwork == .yes
        let whenUnavailable: WhenUnavailable = try settings.choice(.whenUnavailable)
        connectionLimits = ConnectionLimits(
            request: RequestLimits(
                bytesMaximum: try settings.number(.requestSize, 128...65_536),
                tokensMaximum: try settings.number(.requestTokens, 8...64)
            ),
            inFlightMaximum: try settings.number(.inFlightMaximum, 1...65_536),
            outputBytesMaximum: try settings.number(.outputBytes, 65_536...67_108_864),
            outputTimeout: .milliseconds(Int64(try settings.number(.outputTimeout, 100...3_600_000))),
            idleTimeout: .milliseconds(Int64(try settings.number(.idleTimeout, 1_000...86_400_000))),
            firstRequestTimeout: .milliseconds(Int64(try settings.number(.firstRequestTimeout, 100...3_600_000))),
            incompleteRequestTimeout: .milliseconds(
                Int64(try settings.number(.incompleteRequestTimeout, 100...3_600_000))
            ),
            connectionsMaximum: try settings.number(.connectionsMaximum, 1...1_000_000),
            connectionsPerAddressMaximum: settings.text(.connectionsPerAddress) == nil
                ? .max : try settings.number(.connectionsPerAddress, 1...1_000_000),
            allowsWhenUnavailable: whenUnavailable == .allow,
            subscriptionsMaximum: try settings.number(.subscriptionsMaximum, 1...1_000_000),
            authenticationTimeout: .milliseconds(Int64(try settings.number(.authenticationTimeout, 100...600_000))),
            lingerMaximum: TimeAmount(drainTimeout)
        )
        store = EngineConfiguration(
            databaseURL: "",
            unknownUsers: try settings.choice(.unknownUsers),
            lanes: try settings.number(.lanes, 1...64),
            batchMaximum: try settings.number(.batchMaximum, 1...4_096),
            queueCapacity: try settings.number(.queueCapacity, 64...1_048_576),
            queueWaitMaximum: .milliseconds(try settings.number(.queueWait, 10...30_000)),
            requestTimeout: .milliseconds(try settings.number(.requestTimeout, 100...60_000)),
            connectTimeout: .milliseconds(try settings.number(.connectTimeout, 100...60_000)),
            reportTimeout: .milliseconds(try settings.number(.reportTimeout, 1_000...3_600_000)),
            changesPoll: .milliseconds(try settings.number(.changesPoll, 10...60_000))
        )
    }

    private static func tls(_ settings: SettingsReader) throws(SettingsReader.Invalid) -> TLSFiles? {
        let clientCA = settings.text(.tlsClientCA)
        switch (settings.text(.tlsCertificate), settings.text(.tlsKey)) {
        case (let certificate?, let key?):
            return TLSFiles(certificate: certificate, key: key, clientCA: clientCA)
        case (nil, nil) where clientCA == nil:
            return nil
        case (nil, nil):
            throw SettingsReader.Invalid(text: "tls-client-ca needs tls-certificate and tls-key")
        default:
            throw SettingsReader.Invalid(text: "tls-certificate and tls-key go together: set both, or neither")
        }
    }

    /// Only what `headroom migrate` and other one-off commands need.
    public static func database(_ settings: SettingsReader) -> Database {
        if let url = settings.text(.databaseURL) ?? settings.conventionalDatabaseURL { return .url(url) }
        return .privateServer(dataDirectory: settings.text(.dataDirectory) ?? ".headroom")
    }

    public func store(databaseURL: String) -> EngineConfiguration {
        var store = store
        store.databaseURL = databaseURL
        return store
    }
}

extension ServerConfiguration {
    /// A peer that takes nothing for so long is gone.
    package var outputTimeout: TimeAmount { connectionLimits.outputTimeout }
    package var firstRequestTimeout: TimeAmount { connectionLimits.firstRequestTimeout }
    package var incompleteRequestTimeout: TimeAmount { connectionLimits.incompleteRequestTimeout }
    package var httpHasTLS: Bool { tls != nil && http?.usesTLS == true }
}

enum WhenUnavailable: String {
    case deny, allow
}

enum TrustedNetwork: String {
    case no, yes
}

extension ServerConfiguration {
    public var connectionsMaximum: Int { connectionLimits.connectionsMaximum }

    /// Where the system does not allow as many: who comes beyond that is told so, and not left without an answer.
    public mutating func allowConnections(atMost maximum: Int) {
        connectionLimits.connectionsMaximum = max(1, min(connectionLimits.connectionsMaximum, maximum))
    }
}
