import Engine
import ServiceCore

/// The sources of all metrics, read once for each answer, so that samples of one source agree.
struct MetricsSnapshot {
    /// A value that only one sample needs is read here, when the sample is written.
    let service: ServiceDependencies
    let connections: ConnectionCounter.Snapshot
    let traffic: ServiceMetrics.Snapshot
    let engine: BatchingEngine.Snapshot
    let lanes: EngineMetrics
    let database: DatabaseMonitor.Status
    let http: HTTPMetrics.Snapshot
    let httpConnections: ConnectionMetrics.Snapshot
    let webhooks: [(key: WebhookCounters.Key, requests: Int)]
    /// The notifications that wait. It is nil where none are sent, and while it cannot be read.
    let backlog: NotificationOutbox.Backlog?
    /// The figures of this process; nil on systems without /proc.
    let process: ProcessMetrics?

    init(_ dependencies: HTTPServerDependencies) {
        service = dependencies.service
        connections = service.connectionCounter.snapshot
        traffic = service.metrics.snapshot()
        engine = service.engine.snapshot
        lanes = service.engine.metrics
        database = service.monitor.status
        http = dependencies.metrics.snapshot
        httpConnections = dependencies.connectionMetrics.snapshot
        webhooks = dependencies.webhookCounters.snapshot
        backlog = service.notificationMetrics?.backlog
        process = ProcessMetrics()
    }
}
