import Engine
import Logging
import Synchronization

/// The parts that the ports of the service share: engine, access control and counters.
package struct ServiceParts: Sendable {
    package let configuration: ServerConfiguration
    /// libpq connection string or URI; may hold a password.
    package let databaseURL: String
    package let engine: BatchingEngine
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
        engine = BatchingEngine(configuration.engine(databaseURL: databaseURL), logger: logger)
        monitor = DatabaseMonitor(databaseURL: databaseURL, tokens: access, logger: logger)
        connectionCounter = ConnectionCounter()
        metrics = ServiceMetrics(eventLoops: configuration.eventLoops)
        info = ServerInfo(
            version: HeadroomVersion.current,
            engine: engine,
            monitor: monitor,
            access: access,
            connectionCounter: connectionCounter,
            metrics: metrics,
            tls: tls
        )
    }
}

/// Set when shutdown begins, before any request is refused: load balancers see it at `/readyz` and stop sending.
package final class DrainingFlag: Sendable {
    private let flag = Atomic(false)

    package var isSet: Bool { flag.load(ordering: .acquiring) }

    package func set() { flag.store(true, ordering: .releasing) }
}
