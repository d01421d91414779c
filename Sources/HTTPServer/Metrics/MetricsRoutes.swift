import Engine
import HTTPTypes
import Hummingbird
import LineProtocol
import ServiceCore
import Usage

/// `GET /metrics`, for Prometheus, with the permission of `INFO`.
struct MetricsRoutes: RouteProvider {
    private let service: ServiceDependencies
    private let dependencies: HTTPServerDependencies

    init(_ dependencies: HTTPServerDependencies) {
        service = dependencies.service
        self.dependencies = dependencies
    }

    func add(to router: Router<HTTPContext>) {
        let group = dependencies.requestGuard.group(of: router)
        group.get("metrics") { _, context in
            try context.require(.info)
            return Response(
                status: .ok,
                headers: [.contentType: PrometheusEncoder.contentType, .cacheControl: "no-store"],
                body: ResponseBody(byteBuffer: ByteBuffer(string: text))
            )
        }
    }

    var text: String {
        var encoder = PrometheusEncoder()
        encoder.write(.buildInfo, [([service.info.version], 1)])
        encoder.write(.draining, .init(service.draining.isSet))
        writeLineProtocol(to: &encoder)
        writeEngine(to: &encoder)
        writeDatabase(to: &encoder)
        dependencies.metrics.write(to: &encoder)
        dependencies.connectionMetrics.write(to: &encoder)
        encoder.write(
            .webhookRequests,
            dependencies.webhookCounters.snapshot.map {
                ([$0.key.source, $0.key.type.lowercased(), $0.key.outcome], .init($0.requests))
            }
        )
        writeNotifications(to: &encoder)
        if let spans = service.tracing?.metrics {
            encoder.write(.spans, SpanMetrics.Outcome.allCases.map { ([$0.rawValue], .init(spans[$0])) })
        }
        ProcessMetrics()?.write(to: &encoder)
        return encoder.text
    }

    private func writeLineProtocol(to encoder: inout PrometheusEncoder) {
        let connections = service.connectionCounter.snapshot
        encoder.write(.connections, .init(connections.current))
        encoder.write(.connectionsAccepted, .init(connections.total))
        encoder.write(.connectionsRefused, .init(connections.refused))
        let byName = service.access.connectionsByName.sorted { $0.key < $1.key }.prefix(ServerInfo.tokenNamesMaximum)
        encoder.write(.tokenConnections, byName.map { ([$0.key], .init($0.value)) })
        encoder.write(
            .authentications,
            [
                (["accepted"], .init(service.access.authenticated)),
                (["refused"], .init(service.access.authenticationFailures)),
            ]
        )
        encoder.write(.tokensAge, .init(service.access.tokensAge.components.seconds))
        encoder.write(.tokensRefused, .init(service.access.tokensRefused))
        if let tls = service.tls { encoder.write(.handshakesFailed, .init(tls.handshakesFailed)) }
        let snapshot = service.metrics.snapshot()
        encoder.write(
            .requests,
            Verb.allCases.map { ([$0.rawValue.lowercased()], .init(snapshot.requests($0))) }
        )
        encoder.write(
            .answers,
            LoopMetrics.Status.allCases.flatMap { status in
                Tier.allCases.map { (["\(status)", $0.rawValue], .init(snapshot.answers(status, $0))) }
            }
        )
        encoder.write(.shadows, .init(snapshot.shadows))
        encoder.write(
            .errors,
            ReplyError.Code.allCases.map { ([$0.rawValue.lowercased()], .init(snapshot.errors($0))) }
        )
        encoder.write(.answerDuration, .microseconds, [([], snapshot.latencyCounts)])
    }

    private func writeEngine(to encoder: inout PrometheusEncoder) {
        let (snapshot, metrics) = (service.engine.snapshot, service.engine.metrics)
        encoder.write(.lanes, .init(snapshot.lanes))
        encoder.write(.lanesConnected, .init(snapshot.lanesConnected))
        encoder.write(.nodeLanes, snapshot.nodes.map { ([$0.address], .init($0.lanesConnected)) })
        encoder.write(.nodeBuckets, snapshot.nodes.map { ([$0.address], .init($0.buckets)) })
        encoder.write(.laneQueue, metrics.queueDepths.enumerated().map { (["\($0.offset)"], .init($0.element)) })
        encoder.write(.queueWait, .microseconds, [([], metrics.queueWaits)])
        encoder.write(.batchRequests, .requests, [([], metrics.batchSizes)])
        encoder.write(.statementDuration, .microseconds, metrics.statements.map { ([$0.kind.label], $0.times) })
        encoder.write(.reconnects, .init(snapshot.reconnects))
        encoder.write(.outcomesUnknown, .init(metrics.outcomesUnknown))
        encoder.write(.lockTimeouts, .init(metrics.lockTimeouts))
        encoder.write(.messagesCounted, .init(metrics.messagesCounted))
        encoder.write(.requestsBlocked, metrics.requestsBlocked.map { ([$0.reason.rawValue], .init($0.requests)) })
    }

    private func writeNotifications(to encoder: inout PrometheusEncoder) {
        guard let metrics = service.notificationMetrics else { return }
        encoder.write(.notificationsDelivered, .init(metrics.delivered))
        encoder.write(.notificationAttemptsFailed, .init(metrics.failedAttempts))
        encoder.write(.notificationsHeldUp, .init(metrics.isHeldUp ? 1 : 0))
        guard let backlog = metrics.backlog else { return }
        encoder.write(.notificationsPending, .init(backlog.pending))
        encoder.write(.oldestNotification, .init(UInt64(backlog.oldestSeconds)))
    }

    private func writeDatabase(to encoder: inout PrometheusEncoder) {
        let status = service.monitor.status
        encoder.write(.renewalsAwaited, status.awaitedRenewals.map { [([], .init($0))] } ?? [])
        encoder.write(.databaseUp, .init(status.serverVersion != nil))
        encoder.write(.databaseInfo, status.serverVersion.map { [([$0], 1)] } ?? [])
        encoder.write(.schemaVersion, status.schemaVersion.map { [([], .init($0))] } ?? [])
        encoder.write(.timeline, status.timeline.map { [([], .init(UInt64($0)))] } ?? [])
        encoder.write(.supersededPrimaries, .init(service.serverWatch.supersededPrimaries))
        encoder.write(.replication, status.replication.map { [([$0.rawValue], 1)] } ?? [])
        encoder.write(
            .replicationLag,
            status.replicationLagMilliseconds.map { [([], .init(microseconds: UInt64(max(0, $0)) * 1_000))] } ?? []
        )
    }
}
