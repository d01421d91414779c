import ServiceLifecycle
import UnixSignals

/// Reads the TLS files anew on SIGHUP.
struct TLSReloading: Service, CustomStringConvertible {
    let description = "TLS reloading"
    let contexts: TLSContexts
    /// Trapped before anybody is told that the service is ready: untrapped, SIGHUP ends a process.
    let signals: UnixSignalsSequence

    func run() async throws {
        await cancelWhenGracefulShutdown {
            for await _ in signals { contexts.reload() }
        }
    }
}
