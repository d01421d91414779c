import Engine
import LineProtocol
import Logging
import NIOCore
import Postgres
import Synchronization

/// What the parts of the service share: the engine, access control, counters.
package struct ServiceDependencies: Sendable {
    let startedAt = NIODeadline.now()
    package let configuration: ServerConfiguration
    package let database: DatabaseTopology
    package let engine: BatchingEngine
    package let monitor: DatabaseMonitor
    package let serverWatch: ServerWatch
    package let access: AccessControl
    package let connectionCounter: ConnectionCounter
    package let metrics: ServiceMetrics
    /// The counters of notifications; nil if none are sent.
    package let notificationMetrics: NotificationMetrics?
    /// The certificates of the ports; nil if they speak plain text.
    package let tls: TLSContexts?
    /// What makes and sends spans; nil if nothing is traced.
    package let tracing: ServiceTracing?
    package let draining = DrainingFlag()
    package let watchedEventLoops = WatchedEventLoops()
    package let logger: Logger

    init(
        _ configuration: ServerConfiguration,
        placements: CurrentPlacements? = nil,
        database: DatabaseTopology,
        access: AccessControl,
        tls: TLSContexts?,
        tracing: ServiceTracing? = nil,
        logger: Logger
    ) {
        self.configuration = configuration
        self.database = database
        self.access = access
        self.tls = tls
        self.tracing = tracing
        self.logger = logger
        let placements = placements ?? CurrentPlacements(database)
        var engineConfiguration = configuration.engine(database: database)
        engineConfiguration.lanes *= placements.current.homeCount
        engine = BatchingEngine(
            engineConfiguration,
            placements: placements,
            traces: tracing.map { tracing in
                RequestTraces(tracing.tracer, slowTime: tracing.slowTime) { ReplyError($0).code.rawValue }
            },
            logger: logger
        )
        monitor = DatabaseMonitor(
            database: database,
            renewalLeeway: engineConfiguration.renewalLeeway,
            tokens: access,
            placements: placements,
            logger: logger
        )
        serverWatch = ServerWatch(database, logger: logger)
        connectionCounter = ConnectionCounter()
        metrics = ServiceMetrics(eventLoops: configuration.settings.connections.eventLoops)
        notificationMetrics = engineConfiguration.sendsNotifications ? NotificationMetrics() : nil
    }

    package var info: ServerInfo { ServerInfo(self) }
}

/// A flag that is set when shutdown begins, before any request is refused: load balancers see it at `/readyz` and stop
/// sending.
package final class DrainingFlag: Sendable {
    private let flag = Atomic(false)
    private let end = Mutex<ContinuousClock.Instant?>(nil)

    package init() {}

    package var isSet: Bool { flag.load(ordering: .acquiring) }

    package func set() { flag.store(true, ordering: .releasing) }

    /// The ports are being closed, and the connections have this much time to end.
    package func begin(timeout: Duration) {
        end.withLock { $0 = .now + timeout }
        set()
    }

    /// When connections that are still open are closed; nil before `begin`.
    package var deadline: ContinuousClock.Instant? { end.withLock { $0 } }
}
