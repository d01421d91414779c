import Engine
import LineProtocol
import NIOCore
import Usage

/// The lines of `INFO`.
package struct ServerInfo: Sendable {
    private let service: ServiceDependencies

    init(_ service: ServiceDependencies) {
        self.service = service
    }

    package var version: String { HeadroomVersion.current }

    /// The sources of all lines, read once for each answer.
    private struct Snapshot {
        let service: ServiceDependencies
        let now: NIODeadline
        let engine: BatchingEngine.Snapshot
        let connections: ConnectionCounter.Snapshot
        let database: DatabaseMonitor.Status
        let traffic: ServiceMetrics.Snapshot

        init(_ service: ServiceDependencies) {
            self.service = service
            now = .now()
            engine = service.engine.snapshot
            connections = service.connectionCounter.snapshot
            database = service.monitor.status
            traffic = service.metrics.snapshot(at: now)
        }

        /// Ten times the answers per second of the last seconds.
        var tenthsPerSecond: Int64 {
            // The window begins with a whole second, or with the start of the service.
            let window = min(
                Int64(now.uptimeNanoseconds % 1_000_000_000) + Int64(LatencyRecorder.windowSeconds) * 1_000_000_000,
                max(1, (now - service.startedAt).nanoseconds)
            )
            return Int64((Double(traffic.recentLatencies.reduce(0, &+)) * 1e10 / Double(window)).rounded())
        }
    }

    /// A line, or with a name such as `verb_…` a line for each name that begins so. Lines without a value are left out.
    private struct Line: Sendable {
        typealias NamedValue = (name: String, value: (any CustomStringConvertible)?)

        let name: String
        let values: @Sendable (Snapshot) -> [NamedValue]

        init(_ name: String, value: @escaping @Sendable (Snapshot) -> (any CustomStringConvertible)?) {
            self.name = name
            values = { [(name, value($0))] }
        }

        init(each prefix: String, values: @escaping @Sendable (Snapshot) -> [NamedValue]) {
            name = prefix + "…"
            self.values = { values($0).map { (prefix + $0.name, $0.value) } }
        }
    }

    private static let all = serviceLines + databaseLines + trafficLines + accessLines

    /// Names of the lines, for the documentation.
    static let names = all.map(\.name)

    package func lines() -> [String] {
        let snapshot = Snapshot(service)
        return ServerInfo.all.flatMap { $0.values(snapshot) }
            .compactMap { name, value in value.map { "\(name)=\($0)" } }
    }

    private static let serviceLines: [Line] = [
        Line("version") { _ in HeadroomVersion.current },
        Line("uptime_s") { ($0.now - $0.service.startedAt).nanoseconds / 1_000_000_000 },
        Line("connections") { $0.connections.current },
        Line("connections_total") { $0.connections.total },
        Line("connections_refused") { $0.connections.refused },
        Line("database") {
            $0.engine.lanesConnected == $0.engine.lanes ? "up" : $0.engine.lanesConnected == 0 ? "down" : "degraded"
        },
        Line("lanes") { $0.engine.lanes },
        Line("lanes_connected") { $0.engine.lanesConnected },
        Line("queue_depth") { $0.engine.queueDepth },
        Line("batches") { $0.engine.batches },
        Line("requests") { $0.engine.requests },
        Line("reconnects") { $0.engine.reconnects },
        Line("tls") { $0.service.tls == nil ? "off" : "on" },
        Line("tls_handshakes_failed") { $0.service.tls?.handshakesFailed },
    ]

    private static let databaseLines: [Line] = [
        Line("database_version") { $0.database.serverVersion },
        Line("schema_version") { $0.database.schemaVersion },
        Line("primary") { $0.database.primary },
        Line("timeline") { $0.database.timeline },
        Line("superseded_primaries") { unlessNone(UInt64($0.service.serverWatch.supersededPrimaries)) },
        Line("replication") { $0.database.replication?.rawValue },
        Line("replication_lag_s") { $0.database.replicationLagMilliseconds.map { decimal($0, places: 3) } },
        Line("durability") { $0.database.durabilityRisks.map { $0.isEmpty ? "full" : $0.joined(separator: ",") } },
    ]

    private static let trafficLines: [Line] =
        [
            Line("answers_per_second") { decimal($0.tenthsPerSecond, places: 1) },
            Line("latency_p50_us") { LatencyBuckets.percentile(50, of: $0.traffic.recentLatencies) },
            Line("latency_p99_us") { LatencyBuckets.percentile(99, of: $0.traffic.recentLatencies) },
        ]
        + LoopMetrics.Status.allCases.map { status in Line("answers_\(status)") { $0.traffic.answers(status) } }
        + [Line("answers_shadow") { unlessNone($0.traffic.shadows) }]
        + Tier.allCases.map { tier in Line("tier_\(tier.rawValue)") { $0.traffic.answers(tier) } }
        + [
            Line("errors") { $0.traffic.errorsTotal },
            Line(each: "verb_") { snapshot in
                Verb.allCases.map { ($0.rawValue.lowercased(), unlessNone(snapshot.traffic.requests($0))) }
            },
            Line(each: "errors_") { snapshot in
                ReplyError.Code.allCases.map { ($0.rawValue.lowercased(), unlessNone(snapshot.traffic.errors($0))) }
            },
        ]

    private static let accessLines: [Line] = [
        Line("authentication") { $0.service.access.isRequired ? "required" : "off" },
        Line("authenticated") { $0.service.access.authenticated },
        Line("authentication_failures") { $0.service.access.authenticationFailures },
        Line("tokens_age_s") { $0.service.access.tokensAge.components.seconds },
        Line("tokens_refused") { $0.service.access.tokensRefused },
        Line(each: "token_") { $0.service.access.listedConnections.map { ($0.token, $0.connections) } },
        Line("nodes") { unlessNone(UInt64($0.engine.nodes.count)) },
        Line("buckets") { $0.engine.nodes.isEmpty ? nil : $0.engine.nodes.reduce(0) { $0 + $1.buckets } },
        Line(each: "node_") {
            $0.engine.nodes.map { ($0.address, "buckets:\($0.buckets),lanes_connected:\($0.lanesConnected)") }
        },
    ]

    /// The lines as clients of Redis parse them, with those that some look for when they connect. HELLO has the same
    /// values.
    package static func bulk(_ lines: [String]) -> String {
        let own = lines.map { line in
            guard let end = line.firstIndex(of: "=") else { return line }
            return "\(line[..<end]):\(line[line.index(after: end)...])"
        }
        return (["# Server", "redis_mode:standalone", "role:master"] + own).map { $0 + "\r\n" }.joined()
    }

    private static func unlessNone(_ count: UInt64) -> UInt64? { count == 0 ? nil : count }

    /// A number of tenths or thousandths, without Foundation's locale.
    private static func decimal(_ number: Int64, places: Int) -> String {
        let digits = "\(number)"
        let padded = String(repeating: "0", count: max(0, places + 1 - digits.count)) + digits
        return "\(padded.dropLast(places)).\(padded.suffix(places))"
    }
}
