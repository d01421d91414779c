import LineProtocol
import Metrics

/// The client's metrics, recorded with the factory that the process has bootstrapped. docs/client-library.md documents
/// them, and a test compares the two.
struct ClientMetrics: Sendable {
    enum Name: String, CaseIterable {
        case requests = "headroom_client_requests_total"
        case duration = "headroom_client_request_duration_seconds"
        case errors = "headroom_client_errors_total"
        case retries = "headroom_client_retries_total"
        case degraded = "headroom_client_degraded_total"
        case connectionsOpened = "headroom_client_connections_opened_total"
        case connectionsLost = "headroom_client_connections_lost_total"
        case connectFailures = "headroom_client_connect_failures_total"
    }

    /// The metrics of one verb. Made once, because finding a metric by its labels takes longer than a request.
    private struct Verb: Sendable {
        let requests: Counter
        let duration: Timer

        init(_ verb: LineProtocol.Verb?, _ factory: any MetricsFactory) {
            let dimensions = [("verb", verb?.rawValue.lowercased() ?? "other")]
            requests = Counter(label: Name.requests.rawValue, dimensions: dimensions, factory: factory)
            duration = Timer(label: Name.duration.rawValue, dimensions: dimensions, factory: factory)
        }
    }

    private let factory: any MetricsFactory
    private let consume, check, reserve, commit, release, usage, other: Verb
    private let retries, degraded, opened, lost, failures: Counter

    init(factory: any MetricsFactory) {
        func counter(_ name: Name) -> Counter { Counter(label: name.rawValue, dimensions: [], factory: factory) }
        self.factory = factory
        consume = Verb(.consume, factory)
        check = Verb(.check, factory)
        reserve = Verb(.reserve, factory)
        commit = Verb(.commit, factory)
        release = Verb(.release, factory)
        usage = Verb(.usage, factory)
        other = Verb(nil, factory)
        retries = counter(.retries)
        degraded = counter(.degraded)
        opened = counter(.connectionsOpened)
        lost = counter(.connectionsLost)
        failures = counter(.connectFailures)
    }

    func answered(_ command: Command, nanoseconds: Int64) {
        let verb =
            switch command.verb {
            case .consume: consume
            case .check: check
            case .reserve: reserve
            case .commit: commit
            case .release: release
            case .usage: usage
            default: other
            }
        verb.requests.increment()
        verb.duration.recordNanoseconds(nanoseconds)
    }

    func failed(_ error: HeadroomError) {
        // Another program at the endpoint could answer with any word, and each code is a time series.
        let code = HeadroomError.Code.known.contains(error.code) ? error.code.rawValue.lowercased() : "other"
        let dimensions = [("code", code)]
        Counter(label: Name.errors.rawValue, dimensions: dimensions, factory: factory).increment()
    }

    func retried() { retries.increment() }
    func countDegraded() { degraded.increment() }
    func connectionOpened() { opened.increment() }
    func connectionLost() { lost.increment() }
    func connectFailed() { failures.increment() }
}
