import Engine
import LineProtocol
import Logging
import NIOCore
import Postgres
import Usage

/// The settings of the service, checked.
public struct ServerConfiguration: Sendable {
    /// The database that the service uses. Printing or dumping it shows no password.
    public enum Database: Sendable, Equatable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable
    {
        /// A libpq connection string or URI; may hold a password.
        case url(String)
        /// A private PostgreSQL, started in this directory.
        case privateServer(dataDirectory: String)

        public var description: String {
            switch self {
            case .url(let url): "\(DatabaseTopology(url))"
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
    /// nil: none are sent.
    package var notifications: NotificationConfiguration?
    /// nil: nothing is traced.
    package var tracing: TracingConfiguration?
    public var database: Database
    public var logLevel: Logger.Level
    public var eventLoops: Int
    var drainDelay: Duration
    public var drainTimeout: Duration
    /// How the port of `listen` is opened.
    package var linePort: ListeningPort
    public var keysKeepDays: Int
    public var authentication: Authentication
    var connectionsPerTokenMaximum: Int
    /// Only trusted machines can reach the ports.
    public var networkIsTrusted: Bool
    /// nil: in plain text.
    var tls: TLSFiles?
    package var handshakeTimeout: TimeAmount
    package var connectionLimits: ConnectionLimits
    /// Without its database URL, which is unknown until a private PostgreSQL runs.
    private var engine: EngineConfiguration

    /// - Parameter sockets: those that the service manager has opened.
    public init(_ settings: SettingsReader, sockets: [InheritedSocket] = []) throws(InvalidSetting) {
        let sockets = try PortSockets(sockets, settings)
        let set = try settings.value(Settings.listen)
        listen = sockets.line?.address ?? set
        let reusesPort = try settings.value(Settings.reusesPort)
        linePort = ListeningPort(listen, inherited: sockets.line, isReusable: reusesPort)
        http = try HTTPConfiguration(settings, inherited: sockets.http, reusesPort: reusesPort)
        webhooks = try WebhookConfiguration(settings)
        notifications = try NotificationConfiguration(settings)
        tracing = try TracingConfiguration(settings)
        database = try ServerConfiguration.database(settings)
        logLevel = try settings.value(Settings.logLevel)
        eventLoops = try settings.value(Settings.eventLoops)
        drainDelay = try settings.value(Settings.drainDelay)
        drainTimeout = try settings.value(Settings.drainTimeout)
        keysKeepDays = try settings.value(Settings.keysKeepDays)
        authentication = try settings.value(Settings.authentication)
        networkIsTrusted = try settings.value(Settings.trustedNetwork)
        tls = try ServerConfiguration.tls(settings)
        handshakeTimeout = TimeAmount(try settings.value(Settings.tlsHandshakeTimeout))
        connectionLimits = try ConnectionLimits(settings)
        connectionsPerTokenMaximum =
            try settings.value(Settings.connectionsPerTokenMaximum) ?? connectionLimits.connectionsMaximum
        engine = EngineConfiguration(
            database: DatabaseTopology(""),
            unknownUsersPolicy: try settings.value(Settings.unknownUsers),
            renewalLeeway: try settings.value(Settings.renewalLeeway),
            manageURL: try settings.value(Settings.manageURL),
            language: try settings.value(Settings.language),
            lanes: try settings.value(Settings.lanes),
            batchMaximum: try settings.value(Settings.batchMaximum),
            queueCapacity: try settings.value(Settings.queueMaximum),
            queueWaitMaximum: try settings.value(Settings.queueWait),
            requestTimeout: try settings.value(Settings.requestTimeout),
            connectTimeout: try settings.value(Settings.connectTimeout),
            primaryLease: try settings.value(Settings.primaryLease),
            reportTimeout: try settings.value(Settings.reportTimeout),
            changesPoll: try settings.value(Settings.changesPoll),
            sendsNotifications: notifications != nil
        )
    }

    private static func tls(_ settings: SettingsReader) throws(InvalidSetting) -> TLSFiles? {
        let clientCA = try settings.value(Settings.tlsClientCA)
        switch (try settings.value(Settings.tlsCertificate), try settings.value(Settings.tlsKey)) {
        case (let certificate?, let key?):
            return TLSFiles(certificate: certificate, key: key, clientCA: clientCA)
        case (nil, nil) where clientCA == nil:
            return nil
        case (nil, nil):
            throw InvalidSetting(text: "tls-client-ca needs tls-certificate and tls-key")
        default:
            throw InvalidSetting(text: "tls-certificate and tls-key go together: set both, or neither")
        }
    }

    private static func database(_ settings: SettingsReader) throws(InvalidSetting) -> Database {
        if let url = try settings.value(Settings.databaseURL) ?? settings.conventionalDatabaseURL { return .url(url) }
        return .privateServer(dataDirectory: try settings.value(Settings.dataDirectory))
    }

    public func engine(database: DatabaseTopology) -> EngineConfiguration {
        var engine = engine
        engine.database = database
        return engine
    }
}

extension ServerConfiguration {
    package var outputTimeout: TimeAmount { connectionLimits.outputTimeout }
    package var firstRequestTimeout: TimeAmount { connectionLimits.firstRequestTimeout }
    package var incompleteRequestTimeout: TimeAmount { connectionLimits.incompleteRequestTimeout }
    package var allowsWhenUnavailable: Bool { connectionLimits.allowsWhenUnavailable }
    /// Of users' names; nil where users are UUIDs only.
    package var userNamespace: UserNamespace? { connectionLimits.userNamespace }
    package var httpHasTLS: Bool { tls != nil && http?.usesTLS == true }
    public var connectionsMaximum: Int { connectionLimits.connectionsMaximum }

    /// Lowers the limit to what the system allows, so that a connection beyond it is refused with an answer.
    public mutating func allowConnections(atMost maximum: Int) {
        connectionLimits.connectionsMaximum = max(1, min(connectionLimits.connectionsMaximum, maximum))
    }
}

extension ConnectionLimits {
    fileprivate init(_ settings: SettingsReader) throws(InvalidSetting) {
        self.init(
            request: RequestLimits(
                bytesMaximum: try settings.value(Settings.requestBytesMaximum),
                tokensMaximum: try settings.value(Settings.requestArgumentsMaximum)
            ),
            inFlightMaximum: try settings.value(Settings.inFlightMaximum),
            outputBytesMaximum: try settings.value(Settings.outputBytesMaximum),
            outputTimeout: TimeAmount(try settings.value(Settings.outputTimeout)),
            idleTimeout: TimeAmount(try settings.value(Settings.idleTimeout)),
            firstRequestTimeout: TimeAmount(try settings.value(Settings.firstRequestTimeout)),
            incompleteRequestTimeout: TimeAmount(try settings.value(Settings.incompleteRequestTimeout)),
            connectionsMaximum: try settings.value(Settings.connectionsMaximum),
            connectionsPerAddressMaximum: try settings.value(Settings.connectionsPerAddressMaximum) ?? .max,
            allowsWhenUnavailable: try settings.value(Settings.allowsWhenUnavailable),
            userNamespace: try settings.value(Settings.userNamespace),
            subscriptionsMaximum: try settings.value(Settings.subscriptionsMaximum),
            authenticationTimeout: TimeAmount(try settings.value(Settings.authenticationTimeout)),
            lingerMaximum: TimeAmount(try settings.value(Settings.drainTimeout))
        )
    }
}
