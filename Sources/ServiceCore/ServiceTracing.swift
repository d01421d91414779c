import ServiceLifecycle
import Tracing

/// What records and exports traces.
package struct ServiceTracing: Sendable {
    package let tracer: any Tracer
    /// The share of the HTTP requests that are traced although their caller traces nothing.
    package let sampledPercent: Int
    /// A request that takes at least this long is recorded; nil: none is.
    package let slowTime: Duration?
    package let metrics: SpanMetrics
    /// Runs until graceful shutdown.
    package let exporter: any Service

    package init(
        tracer: any Tracer,
        sampledPercent: Int,
        slowTime: Duration?,
        metrics: SpanMetrics,
        exporter: any Service
    ) {
        self.tracer = tracer
        self.sampledPercent = sampledPercent
        self.slowTime = slowTime
        self.metrics = metrics
        self.exporter = exporter
    }
}
