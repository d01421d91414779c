import Engine
import Foundation
import Logging
import NIOCore
import OutgoingHTTP
import ServiceCore
import ServiceLifecycle
import Synchronization

/// Sends the spans that have ended to a collector, over OTLP in JSON.
package struct TraceExporter: Service, CustomStringConvertible {
    package let description = "trace exporter"

    /// The most spans that wait. They take some megabytes.
    private static let queueCapacity = 8_192
    /// The most spans in one request.
    private static let spansMaximum = 512
    private static let interval = Duration.seconds(1)
    private static let timeout = Duration.seconds(10)
    /// The time after each attempt that failed for a reason that may pass. After the last one, the spans are given up.
    private static let retryDelays: [Duration] = [1, 2, 4, 8, 16].map { .seconds($0) }
    /// How long the end of the service waits for the last spans.
    private static let drainTimeout = Duration.seconds(1)

    private let queue: SpanQueue
    private let metrics: SpanMetrics
    private let url: String
    private let fields: [(name: String, value: String)]
    private let resource: [SpanDocument.Attribute]
    private let logger: Logger
    private let isFailing = Flag()

    private final class Flag: Sendable {
        let value = Atomic(false)
    }

    private init(
        _ queue: SpanQueue,
        _ metrics: SpanMetrics,
        _ settings: SettingValues<TracingSettings>,
        url: String,
        _ logger: Logger
    ) throws(SettingFile.Unusable) {
        self.queue = queue
        self.metrics = metrics
        self.logger = logger
        fields = try CollectorFields(settings).fields + [("User-Agent", HeadroomVersion.userAgent)]
        self.url = url
        resource = [
            .init(key: "service.name", value: .text("headroom")),
            .init(key: "service.version", value: .text(HeadroomVersion.current)),
            .init(key: "service.instance.id", value: .text(UUID().uuidString.lowercased())),
            .init(key: "host.name", value: .text(ProcessInfo.processInfo.hostName)),
        ]
    }

    /// - Returns: nil if nothing is traced.
    package static func tracing(
        _ settings: SettingValues<TracingSettings>,
        logger: Logger
    ) throws(SettingFile.Unusable) -> ServiceTracing? {
        guard let url = settings.url else { return nil }
        let metrics = SpanMetrics()
        let queue = SpanQueue(capacity: queueCapacity, metrics: metrics)
        return ServiceTracing(
            tracer: SpanTracer(queue: queue),
            sampledPercent: settings.sampledPercent,
            slowTime: settings.slowTime == .zero ? nil : settings.slowTime,
            metrics: metrics,
            exporter: try TraceExporter(queue, metrics, settings, url: url, logger)
        )
    }

    package func run() async throws {
        let sender = HTTPSender(url: url, connections: 1, timeout: TraceExporter.timeout)
        let interrupted = await cancelWhenGracefulShutdown { await exportUntilCancelled(over: sender) }
        // Everything else has stopped by now.
        let last = Task {
            var spans = interrupted
            repeat {
                await finish(spans, over: sender)
                spans = queue.take(atMost: TraceExporter.spansMaximum)
            } while !spans.isEmpty
        }
        let timer = Task {
            try? await Task.sleep(for: TraceExporter.drainTimeout)
            last.cancel()
        }
        await last.value
        timer.cancel()
        await sender.close()
    }

    /// - Returns: the spans that were being sent.
    private func exportUntilCancelled(over sender: HTTPSender) async -> [FinishedSpan] {
        while !Task.isCancelled {
            let spans = queue.take(atMost: TraceExporter.spansMaximum)
            let isDelivered = await deliver(spans, over: sender, retryDelays: TraceExporter.retryDelays)
            guard isDelivered else { return spans }
            if queue.count < TraceExporter.spansMaximum { try? await Task.sleep(for: TraceExporter.interval) }
        }
        return []
    }

    private func finish(_ spans: [FinishedSpan], over sender: HTTPSender) async {
        let isDelivered = await deliver(spans, over: sender, retryDelays: [])
        if !isDelivered { metrics.add(spans.count, .failed) }
    }

    /// Sends spans, again after a failure that may pass, and counts what became of them.
    ///
    /// - Returns: false if the task was cancelled meanwhile. The collector may have them, or not.
    private func deliver(
        _ spans: [FinishedSpan],
        over sender: HTTPSender,
        retryDelays: [Duration]
    ) async -> Bool {
        guard !spans.isEmpty else { return true }
        guard let body = try? SpanDocument(spans, resource: resource, version: HeadroomVersion.current).encoded() else {
            metrics.add(spans.count, .failed)
            return true
        }
        var delays = retryDelays.makeIterator()
        while case let result? = await sender.post(json: ByteBuffer(bytes: body), fields) {
            switch CollectorAnswer(result) {
            case .accepted(let rejected, let reason):
                let rejected = min(rejected, spans.count)
                metrics.add(rejected, .failed)
                metrics.add(spans.count - rejected, .exported)
                log(rejected == 0 ? nil : "\(rejected) spans were rejected: \(reason ?? "no reason given")")
                return true
            case .refused(let problem):
                metrics.add(spans.count, .failed)
                log(problem)
                return true
            case .unavailable(let problem, let retryAfter):
                log(problem)
                guard let delay = delays.next() else {
                    metrics.add(spans.count, .failed)
                    return true
                }
                try? await Task.sleep(for: max(delay, min(retryAfter ?? .zero, .seconds(60))))
                if Task.isCancelled { return false }
            }
        }
        return false
    }

    /// Logs a problem as a warning, and further ones at the level debug until delivery works again; nil is a success.
    private func log(_ problem: String?) {
        let wasFailing = isFailing.value.exchange(problem != nil, ordering: .relaxed)
        if let problem {
            logger.log(
                level: wasFailing ? .debug : .warning,
                "traces are not delivered",
                metadata: ["problem": "\(problem)"]
            )
        } else if wasFailing {
            logger.notice("traces are delivered again")
        }
    }
}
