import ServiceLifecycle
import UnixSignals

/// Reloads the TLS files on SIGHUP.
struct TLSReloadService: Service, CustomStringConvertible {
    let description = "TLS reloading"
    let contexts: TLSContexts
    /// Trapped before the service reports that it is ready: an untrapped SIGHUP ends a process.
    let signals: UnixSignalsSequence

    func run() async throws {
        await cancelWhenGracefulShutdown {
            for await _ in signals { contexts.reload() }
        }
    }
}
