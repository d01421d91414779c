import Engine
import LineProtocol
import Postgres

/// The settings of the service, checked, and what follows from them when it starts.
package struct ServerConfiguration: Sendable {
    /// The database that the service uses.
    package enum Database: Sendable, Equatable {
        /// A libpq connection string or URI; may hold a password.
        case url(Secret)
        /// A private PostgreSQL, started in this directory.
        case privateServer(dataDirectory: String)
    }

    package let settings: SettingValues<Settings>
    package let database: Database
    package let listen: ListenAddress
    /// How the port of `listen` is opened.
    package let linePort: ListeningPort
    /// The HTTP server; nil if it is off.
    package var http: HTTPConfiguration?
    package private(set) var connectionsMaximum: Int

    /// - Parameter sockets: those that the service manager has opened.
    package init(_ reader: SettingsReader, sockets: [InheritedSocket] = []) throws(InvalidSetting) {
        settings = try SettingValues(reader)
        let url = settings.database.url ?? reader.conventionalDatabaseURL
        database = url.map { .url($0) } ?? .privateServer(dataDirectory: settings.database.dataDirectory)
        let sockets = try PortSockets(sockets, settings)
        let reusesPort = settings.connections.reusesPort
        listen = sockets.line?.address ?? settings.connections.listen
        linePort = ListeningPort(listen, inherited: sockets.line, isReusable: reusesPort)
        if let address = sockets.http?.address ?? settings.http.address {
            let port = ListeningPort(address, inherited: sockets.http, isReusable: reusesPort)
            http = HTTPConfiguration(settings.http, address, port)
        }
        connectionsMaximum = settings.connections.connectionsMaximum
    }

    package var httpHasTLS: Bool { settings.access.tls != nil && http?.settings.usesTLS == true }

    /// Lowers the limit to what the system allows, so that a connection beyond it is refused with an answer.
    package mutating func allowConnections(atMost maximum: Int) {
        connectionsMaximum = max(1, min(connectionsMaximum, maximum))
    }

    package func engine(database: DatabaseTopology) -> EngineConfiguration {
        let counting = settings.counting
        return EngineConfiguration(
            database: database,
            unknownUsersPolicy: counting.unknownUsers,
            renewalLeeway: counting.renewalLeeway,
            manageURL: counting.manageURL,
            language: counting.language,
            lanes: counting.lanes,
            batchMaximum: counting.batchMaximum,
            queueCapacity: counting.queueMaximum,
            queueWaitMaximum: counting.queueWait,
            requestTimeout: counting.requestTimeout,
            connectTimeout: counting.connectTimeout,
            primaryLease: counting.primaryLease,
            reportTimeout: counting.reportTimeout,
            changesPoll: counting.changesPoll,
            sendsNotifications: settings.notifications.url != nil
        )
    }
}
