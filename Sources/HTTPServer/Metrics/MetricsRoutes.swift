import Engine
import HTTPTypes
import HeadroomServer
import Hummingbird
import LineProtocol
import Usage

/// `GET /metrics`, for Prometheus. Whoever may ask `INFO` may read it.
struct MetricsRoutes: RouteCollecting {
    private let parts: ServiceParts
    private let http: HTTPMetrics
    private let connections: ConnectionFigures
    private let webhooks: WebhookCounters
    private let openPort: OpenPort

    init(
        _ parts: ServiceParts,
        http: HTTPMetrics,
        connections: ConnectionFigures,
        webhooks: WebhookCounters,
        openPort: OpenPort
    ) {
        self.parts = parts
        self.http = http
        self.connections = connections
        self.webhooks = webhooks
        self.openPort = openPort
    }

    func add(to router: Router<HTTPContext>) {
        let group = router.group().add(middleware: Authenticating(access: parts.access)).add(middleware: openPort)
        group.get("metrics") { _, context in
            try context.require(.info)
            return Response(
                status: .ok,
                headers: [.contentType: MetricsText.contentType, .cacheControl: "no-store"],
                body: ResponseBody(byteBuffer: ByteBuffer(string: text))
            )
        }
    }

    var text: String {
        var text = MetricsText()
        text.write(.buildInfo, [([parts.info.version], 1)])
        text.write(.draining, .init(parts.draining.isSet))
        writeLineProtocol(to: &text)
        writeStore(to: &text)
        writeDatabase(to: &text)
        http.write(to: &text)
        connections.write(to: &text)
        text.write(
            .webhookRequests,
            webhooks.snapshot.map { ([$0.key.source, $0.key.type.lowercased(), $0.key.outcome], .init($0.requests)) }
        )
        ProcessFigures()?.write(to: &text)
        return text.text
    }

    private func writeLineProtocol(to text: inout MetricsText) {
        let connectionCounter = parts.connectionCounter.snapshot
        text.write(.connections, .init(connectionCounter.current))
        text.write(.connectionsAccepted, .init(connectionCounter.total))
        text.write(.connectionsRefused, .init(connectionCounter.refused))
        let byName = parts.access.connectionsByName.sorted { $0.key < $1.key }.prefix(ServerInfo.tokenNamesMaximum)
        text.write(.tokenConnections, byName.map { ([$0.key], .init($0.value)) })
        text.write(
            .authentications,
            [
                (["accepted"], .init(parts.access.authenticated)),
                (["refused"], .init(parts.access.authenticationFailures)),
            ]
        )
        text.write(.tokensAge, .init(parts.access.tokensAge.components.seconds))
        text.write(.tokensRefused, .init(parts.access.tokensRefused))
        if let tls = parts.tls { text.write(.handshakesFailed, .init(tls.handshakesFailed)) }
        let snapshot = parts.metrics.snapshot()
        text.write(
            .requests,
            Verb.allCases.map { ([$0.rawValue.lowercased()], .init(snapshot.requests($0))) }
        )
        text.write(
            .answers,
            LoopMetrics.Status.allCases.flatMap { status in
                Tier.allCases.map { (["\(status)", $0.rawValue], .init(snapshot.answers(status, $0))) }
            }
        )
        text.write(
            .errors,
            ReplyError.Code.allCases.map { ([$0.rawValue.lowercased()], .init(snapshot.errors($0))) }
        )
        text.write(.answerDuration, .microseconds, [([], snapshot.latencyCounts)])
    }

    private func writeStore(to text: inout MetricsText) {
        let (snapshot, metrics) = (parts.engine.snapshot, parts.engine.metrics)
        text.write(.lanes, .init(snapshot.lanes))
        text.write(.lanesConnected, .init(snapshot.lanesConnected))
        text.write(.laneQueue, metrics.queueDepths.enumerated().map { (["\($0.offset)"], .init($0.element)) })
        text.write(.queueWait, .microseconds, [([], metrics.queueWaits)])
        text.write(.batchRequests, .requests, [([], metrics.batchSizes)])
        text.write(.statementDuration, .microseconds, metrics.statements.map { (["\($0.kind)"], $0.times) })
        text.write(.reconnects, .init(snapshot.reconnects))
        text.write(.outcomesUnknown, .init(metrics.outcomesUnknown))
        text.write(.messagesCounted, .init(metrics.messagesCounted))
        text.write(.requestsBlocked, .init(metrics.requestsBlocked))
    }

    private func writeDatabase(to text: inout MetricsText) {
        let facts = parts.monitor.facts
        text.write(.databaseUp, .init(facts.serverVersion != nil))
        text.write(.databaseInfo, facts.serverVersion.map { [([$0], 1)] } ?? [])
        text.write(.schemaVersion, facts.schemaVersion.map { [([], .init($0))] } ?? [])
        text.write(
            .replicationLag,
            facts.replicationLagMilliseconds.map { [([], .init(microseconds: UInt64(max(0, $0)) * 1_000))] } ?? []
        )
    }
}
