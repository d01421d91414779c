import Engine
import LineProtocol
import NIOCore
import Usage

/// The lines of `INFO`.
package struct ServerInfo: Sendable {
    package let version: String
    private let startedAt = NIODeadline.now()
    private let engine: BatchingEngine
    private let monitor: DatabaseMonitor
    private let serverWatch: ServerWatch
    private let access: AccessControl
    private let connectionCounter: ConnectionCounter
    private let metrics: ServiceMetrics
    private let tls: TLSContexts?

    init(
        version: String,
        engine: BatchingEngine,
        monitor: DatabaseMonitor,
        serverWatch: ServerWatch,
        access: AccessControl,
        connectionCounter: ConnectionCounter,
        metrics: ServiceMetrics,
        tls: TLSContexts?
    ) {
        self.version = version
        self.engine = engine
        self.monitor = monitor
        self.serverWatch = serverWatch
        self.access = access
        self.connectionCounter = connectionCounter
        self.metrics = metrics
        self.tls = tls
    }

    /// Names of the lines, for the documentation. `verb_…` and `errors_…` stand for one line for each verb and code
    /// that has occurred, `token_…` for one for each token name with open connections, `node_…` for one for
    /// each server of a distributed database.
    static let names =
        serviceNames + transportNames + databaseNames + trafficNames
        + LoopMetrics.Status.allCases.map(answersName) + ["answers_shadow"]
        + Tier.allCases.map(tierName) + ["errors", "verb_…", "errors_…"] + accessNames + ["token_…"]
        + nodeNames + ["node_…"]

    private static let serviceNames = [
        "version", "uptime_s", "connections", "connections_total", "connections_refused", "database", "lanes",
        "lanes_connected", "queue_depth", "batches", "requests", "reconnects",
    ]
    private static let transportNames = ["tls", "tls_handshakes_failed"]
    private static let databaseNames = [
        "database_version", "schema_version", "primary", "timeline", "superseded_primaries", "replication",
        "replication_lag_s", "durability",
    ]
    private static let trafficNames = ["answers_per_second", "latency_p50_us", "latency_p99_us"]

    private static let accessNames = [
        "authentication", "authenticated", "authentication_failures", "tokens_age_s", "tokens_refused",
    ]
    /// Token names that are listed, in alphabetical order: the answer must be bounded.
    package static let tokenNamesMaximum = 64

    /// Of a distributed database.
    private static let nodeNames = ["nodes", "buckets"]

    private static func answersName(_ status: LoopMetrics.Status) -> String { "answers_\(status)" }
    private static func tierName(_ tier: Tier) -> String { "tier_\(tier.rawValue)" }

    package func lines() -> [String] {
        let now = NIODeadline.now()
        let snapshot = metrics.snapshot(at: now)
        let groups = [
            zip(ServerInfo.serviceNames, serviceValues(now)).map { ($0, $1) },
            zip(ServerInfo.transportNames, [tls == nil ? "off" : "on", tls.map { "\($0.handshakesFailed)" }])
                .map { ($0, $1) },
            zip(ServerInfo.databaseNames, databaseValues).map { ($0, $1) },
            zip(ServerInfo.trafficNames, trafficValues(snapshot, now)).map { ($0, $1) },
            LoopMetrics.Status.allCases.map { (ServerInfo.answersName($0), "\(snapshot.answers($0))") },
            [("answers_shadow", ServerInfo.unlessNone(snapshot.shadows))],
            Tier.allCases.map { (ServerInfo.tierName($0), "\(snapshot.answers($0))") },
            [("errors", "\(snapshot.errorsTotal)")],
            Verb.allCases.map { ("verb_\($0.rawValue.lowercased())", ServerInfo.unlessNone(snapshot.requests($0))) },
            ReplyError.Code.allCases.map {
                ("errors_\($0.rawValue.lowercased())", ServerInfo.unlessNone(snapshot.errors($0)))
            },
            zip(ServerInfo.accessNames, accessValues).map { ($0, $1) },
            access.connectionCounter.connectionsByName.sorted { $0.key < $1.key }.prefix(ServerInfo.tokenNamesMaximum)
                .map { ("token_\($0.key)", "\($0.value)") },
            nodes,
        ]
        return groups.joined().compactMap { name, value in value.map { "\(name)=\($0)" } }
    }

    /// The lines as clients of Redis parse them, with those that some look for when they connect. HELLO has the same
    /// values.
    package static func bulk(_ lines: [String]) -> String {
        let own = lines.map { line in
            guard let end = line.firstIndex(of: "=") else { return line }
            return "\(line[..<end]):\(line[line.index(after: end)...])"
        }
        return (["# Server", "redis_mode:standalone", "role:master"] + own).map { $0 + "\r\n" }.joined()
    }

    private static func unlessNone(_ count: UInt64) -> String? { count == 0 ? nil : "\(count)" }

    private func serviceValues(_ now: NIODeadline) -> [String?] {
        let engine = engine.snapshot
        let connections = connectionCounter.snapshot
        let database = engine.lanesConnected == engine.lanes ? "up" : engine.lanesConnected == 0 ? "down" : "degraded"
        return [
            version, "\((now - startedAt).nanoseconds / 1_000_000_000)", "\(connections.current)",
            "\(connections.total)", "\(connections.refused)", database, "\(engine.lanes)",
            "\(engine.lanesConnected)", "\(engine.queueDepth)", "\(engine.batches)", "\(engine.requests)",
            "\(engine.reconnects)",
        ]
    }

    private var nodes: [(String, String?)] {
        let nodes = engine.snapshot.nodes
        guard !nodes.isEmpty else { return [] }
        return zip(ServerInfo.nodeNames, [nodes.count, nodes.reduce(0) { $0 + $1.buckets }]).map { ($0, "\($1)") }
            + nodes.map { ("node_\($0.address)", "buckets:\($0.buckets),lanes_connected:\($0.lanesConnected)") }
    }

    private var accessValues: [String?] {
        [
            access.isRequired ? "required" : "off", "\(access.authenticated)", "\(access.authenticationFailures)",
            "\(access.tokensAge.components.seconds)", "\(access.tokensRefused)",
        ]
    }

    private var databaseValues: [String?] {
        let status = monitor.status
        return [
            status.serverVersion, status.schemaVersion.map { "\($0)" }, status.primary,
            status.timeline.map { "\($0)" }, ServerInfo.unlessNone(UInt64(serverWatch.supersededPrimaries)),
            status.replication?.rawValue,
            status.replicationLagMilliseconds.map { ServerInfo.decimal($0, places: 3) },
            status.durabilityRisks.map { $0.isEmpty ? "full" : $0.joined(separator: ",") },
        ]
    }

    private func trafficValues(_ snapshot: ServiceMetrics.Snapshot, _ now: NIODeadline) -> [String?] {
        let recent = snapshot.recentLatencies
        func percentile(_ percent: Double) -> String? {
            LatencyBuckets.percentile(percent, of: recent).map { "\($0)" }
        }
        // The window begins with a whole second, or with the start of the service.
        let window = min(
            Int64(now.uptimeNanoseconds % 1_000_000_000) + Int64(LatencyRecorder.windowSeconds) * 1_000_000_000,
            max(1, (now - startedAt).nanoseconds)
        )
        let tenths = Double(recent.reduce(0, &+)) * 1e10 / Double(window)
        return [ServerInfo.decimal(Int64(tenths.rounded()), places: 1), percentile(50), percentile(99)]
    }

    /// A number of tenths or thousandths, without Foundation's locale.
    private static func decimal(_ number: Int64, places: Int) -> String {
        let digits = "\(number)"
        let padded = String(repeating: "0", count: max(0, places + 1 - digits.count)) + digits
        return "\(padded.dropLast(places)).\(padded.suffix(places))"
    }
}
