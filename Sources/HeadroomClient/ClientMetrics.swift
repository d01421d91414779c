import Metrics

/// What the client counts, with the factory that the process has bootstrapped. docs/client-library.md has what each means.
struct ClientMetrics: Sendable {
    static let requests = "headroom_client_requests_total"
    static let duration = "headroom_client_request_duration_seconds"
    static let retries = "headroom_client_retries_total"
    static let degraded = "headroom_client_degraded_total"
    static let connectionsOpened = "headroom_client_connections_opened_total"
    static let connectionsEnded = "headroom_client_connections_ended_total"
    static let inFlight = "headroom_client_requests_in_flight"

    private let opened = Counter(label: ClientMetrics.connectionsOpened)
    private let ended = Counter(label: ClientMetrics.connectionsEnded)

    private let uncounted = Counter(label: ClientMetrics.degraded)

    func letThrough() { uncounted.increment() }
    func connected() { opened.increment() }
    func disconnected() { ended.increment() }
}
