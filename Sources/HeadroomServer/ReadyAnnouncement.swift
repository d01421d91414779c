import Engine
import ServiceLifecycle

/// Announces once that the service is ready: the ports are open and the lanes connected, so that the first request, and the
/// first readiness check of a load balancer, succeed.
struct ReadyAnnouncement: Service, CustomStringConvertible {
    let description = "ready announcement"
    private let engine: BatchingEngine
    private let httpAddresses: AsyncStream<ListenAddress?>
    private let announce: @Sendable (_ http: ListenAddress?) -> Void

    /// How long the first connected lane waits for the others.
    private static let lanesTimeout = Duration.seconds(2)

    /// - Parameter httpAddresses: yields once, the address of the HTTP server; nil if none is open.
    init(
        _ engine: BatchingEngine,
        httpAddresses: AsyncStream<ListenAddress?>,
        announce: @escaping @Sendable (_ http: ListenAddress?) -> Void
    ) {
        self.engine = engine
        self.httpAddresses = httpAddresses
        self.announce = announce
    }

    /// - Parameter late: the time since the end of `lanesTimeout`; negative before.
    private func areLanesReady(_ late: Duration) -> Bool {
        let connected = engine.snapshot.lanesConnected
        return connected == engine.configuration.lanes || (connected > 0 && late > .zero)
    }

    func run() async throws {
        await cancelWhenGracefulShutdown {
            guard let address = await httpAddresses.first(where: { _ in true }) else { return }
            let latest = ContinuousClock.now + ReadyAnnouncement.lanesTimeout
            while !areLanesReady(ContinuousClock.now - latest) {
                do { try await Task.sleep(for: .milliseconds(2)) } catch { return }
            }
            announce(address)
        }
        // A service that returns ends the others.
        try? await gracefulShutdown()
    }
}
