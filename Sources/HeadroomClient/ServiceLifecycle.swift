#if ServiceLifecycle
import ServiceLifecycle

/// Runs in a `ServiceGroup` beside the other services of a process.
extension HeadroomClient: Service {
    /// Runs until a graceful shutdown, then calls ``shutDown()``. You may send requests before and while it runs.
    public func run() async throws {
        // A cancellation ends it like a graceful shutdown.
        try? await gracefulShutdown()
        await shutDown()
    }
}
#endif
