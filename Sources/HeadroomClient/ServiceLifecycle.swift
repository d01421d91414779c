#if ServiceLifecycle
import ServiceLifecycle

/// Runs in a `ServiceGroup` beside the other services of a process.
extension HeadroomClient: Service {
    /// Runs until a graceful shutdown, which is ``shutDown()``. Requests may be made before it and beside it.
    public func run() async throws {
        // A cancellation ends it like a graceful shutdown.
        try? await gracefulShutdown()
        await shutDown()
    }
}
#endif
