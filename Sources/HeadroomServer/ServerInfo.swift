import UsageStore

/// What `INFO` tells.
struct ServerInfo: Sendable {
    let version: String
    private let startedAt: ContinuousClock.Instant
    private let store: BatchingStore
    private let census: Census

    init(version: String, store: BatchingStore, census: Census) {
        self.version = version
        self.store = store
        self.census = census
        startedAt = .now
    }

    /// Names of the lines, for the documentation.
    static let names = [
        "version", "uptime_s", "connections", "connections_total", "connections_refused", "database", "lanes",
        "lanes_connected", "queue_depth", "batches", "requests", "reconnects",
    ]

    func lines() -> [String] {
        let store = store.snapshot
        let census = census.snapshot
        let database = store.lanesConnected == store.lanes ? "up" : store.lanesConnected == 0 ? "down" : "degraded"
        let values: [String] = [
            version, "\((ContinuousClock.now - startedAt).components.seconds)", "\(census.current)", "\(census.total)",
            "\(census.refused)", database, "\(store.lanes)", "\(store.lanesConnected)", "\(store.queueDepth)",
            "\(store.batches)", "\(store.requests)", "\(store.reconnects)",
        ]
        return zip(ServerInfo.names, values).map { "\($0)=\($1)" }
    }
}
