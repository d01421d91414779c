import Engine
import Logging
import Synchronization

/// What the ports of the service share: whom they ask, who may, and what is counted.
package struct ServiceParts: Sendable {
    package let configuration: ServerConfiguration
    /// libpq connection string or URI; may hold a password.
    package let databaseURL: String
    package let store: BatchingEngine
    package let monitor: DatabaseMonitor
    package let access: AccessControl
    package let connectionCounter: ConnectionCounter
    package let metrics: ServiceMetrics
    package let info: ServerInfo
    /// nil: in plain text.
    package let tls: TLSContexts?
    package let draining = DrainingFlag()
    package let logger: Logger

    init(
        _ configuration: ServerConfiguration,
        databaseURL: String,
        access: AccessControl,
        tls: TLSContexts?,
        logger: Logger
    ) {
        self.configuration = configuration
        self.databaseURL = databaseURL
        self.access = access
        self.tls = tls
        self.logger = logger
        store = BatchingEngine(configuration.engine(databaseURL: databaseURL), logger: logger)
        monitor = DatabaseMonitor(databaseURL: databaseURL, tokens: access, logger: logger)
        connectionCounter = ConnectionCounter()
        metrics = ServiceMetrics(eventLoops: configuration.eventLoops)
        info = ServerInfo(
            version: HeadroomVersion.current,
            store: store,
            monitor: monitor,
            access: access,
            connectionCounter: connectionCounter,
            metrics: metrics,
            tls: tls
        )
    }
}

/// Set once the service shuts down, before anything is refused: who sends us traffic may ask (`/readyz`) and stop.
package final class DrainingFlag: Sendable {
    private let flag = Atomic(false)

    package var isSet: Bool { flag.load(ordering: .acquiring) }

    func set() { flag.store(true, ordering: .releasing) }
}
