import Engine
import ServiceLifecycle

/// Tells that the service is ready, once: when its ports are open and the lanes have their connections, so that the first
/// question, and a balancer's first look at readiness, finds what the ready line promised.
struct Announcement: Service, CustomStringConvertible {
    let description = "announcement"
    private let store: BatchingEngine
    private let sidePort: AsyncStream<ListenAddress?>
    private let tell: @Sendable (_ sidePort: ListenAddress?) -> Void

    /// How long the first lane waits for the others.
    private static let lanesTimeout = Duration.seconds(2)

    /// - Parameter sidePort: yields once, the second port's address when that one is open, nil where there is none.
    init(
        _ store: BatchingEngine,
        sidePort: AsyncStream<ListenAddress?>,
        tell: @escaping @Sendable (_ sidePort: ListenAddress?) -> Void
    ) {
        self.store = store
        self.sidePort = sidePort
        self.tell = tell
    }

    /// That a message can be counted was proved before the ports were opened; without a lane, none is.
    private func areLanesReady(_ late: Duration) -> Bool {
        let connected = store.snapshot.lanesConnected
        return connected == store.configuration.lanes || (connected > 0 && late > .zero)
    }

    func run() async throws {
        await cancelWhenGracefulShutdown {
            guard let address = await sidePort.first(where: { _ in true }) else { return }
            let latest = ContinuousClock.now + Announcement.lanesTimeout
            while !areLanesReady(ContinuousClock.now - latest) {
                do { try await Task.sleep(for: .milliseconds(2)) } catch { return }
            }
            tell(address)
        }
        // A service that returns ends the others.
        try? await gracefulShutdown()
    }
}
