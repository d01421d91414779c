import Engine
import ServiceLifecycle

/// Announces once that the service is ready: the ports are open and the lanes connected, so that the first request, and
/// the first readiness check of a load balancer, succeed.
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

    /// - Parameter deadline: after it, one connected lane is enough.
    private func areLanesReady(by deadline: ContinuousClock.Instant) -> Bool {
        let connected = engine.snapshot.lanesConnected
        return connected == engine.configuration.lanes || (connected > 0 && .now > deadline)
    }

    func run() async throws {
        await cancelWhenGracefulShutdown {
            guard let address = await httpAddresses.first(where: { _ in true }) else { return }
            let deadline = ContinuousClock.now + ReadyAnnouncement.lanesTimeout
            while !areLanesReady(by: deadline) {
                do { try await Task.sleep(for: .milliseconds(2)) } catch { return }
            }
            announce(address)
        }
        // A service that returns ends the others.
        try? await gracefulShutdown()
    }
}
