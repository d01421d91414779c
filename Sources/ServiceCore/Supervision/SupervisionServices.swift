import Engine
import Logging
import NIOCore
import ServiceLifecycle
import Synchronization
import UnixSignals

/// Lets the ports accept and serve for a while after a signal, until load balancers have seen `/readyz`. Without a
/// signal a part of the service has failed, and nothing is gained by a delay.
struct DrainDelayService: Service, CustomStringConvertible {
    let description = "drain delay"
    let delay: Duration
    let draining: DrainingFlag
    let manager: ServiceManager?
    let logger: Logger

    func run() async throws {
        try await gracefulShutdown()
        let isBySignal = draining.isSet
        draining.set()
        manager?.stopping()
        guard isBySignal, delay > .zero else { return }
        logger.notice("not ready; the ports stay open for the drain delay", metadata: ["delay": "\(delay)"])
        try await Task.sleep(for: delay)
    }
}

/// Reads the TLS files again on SIGHUP.
///
/// It traps the signal when it is made, because an untrapped one ends a process, and reads the files from then on: also
/// while the service waits for its database. Only a service that is ready reports to the service manager.
struct ReloadService: Service, CustomStringConvertible {
    let description = "reloading"
    private let isReady: ReadyFlag
    private let reloading: Task<Void, Never>

    /// - Parameter contexts: nil: there is nothing to reload; the service reports to the service manager that it has
    ///   reloaded.
    init(contexts: TLSContexts?, manager: ServiceManager?) async {
        let isReady = ReadyFlag()
        let signals = await UnixSignalsSequence(trapping: .sighup)
        self.isReady = isReady
        reloading = Task {
            for await _ in signals {
                let manager = isReady.isSet ? manager : nil
                manager?.reloading()
                contexts?.reload()
                manager?.ready()
            }
        }
    }

    /// Call it before the service reports that it is ready.
    func becomeReady() { isReady.set() }

    func run() async throws {
        try? await gracefulShutdown()
        reloading.cancel()
    }

    private final class ReadyFlag: Sendable {
        private let value = Atomic(false)

        var isSet: Bool { value.load(ordering: .acquiring) }

        func set() { value.store(true, ordering: .releasing) }
    }
}

/// The threads that must answer for the service to count as alive.
package final class WatchedEventLoops: Sendable {
    private let loops = Mutex<[any EventLoop]>([])

    package func add(_ group: some EventLoopGroup) {
        loops.withLock { $0 += group.makeIterator() }
    }

    /// Returns once each has executed a task.
    func ping() async {
        for loop in loops.withLock({ $0 }) { try? await loop.submit {}.get() }
    }
}

/// Reports to the service manager that the service is alive: that its event loops execute tasks, and that the queues of
/// its lanes can be entered. A lane that waits for the database is alive, because a restart would not help.
struct WatchdogService: Service, CustomStringConvertible {
    let description = "watchdog"
    let timeout: Duration
    let manager: ServiceManager
    let eventLoops: WatchedEventLoops
    let engine: BatchingEngine

    func run() async throws {
        await cancelWhenGracefulShutdown {
            while true {
                await eventLoops.ping()
                _ = engine.snapshot
                manager.alive()
                do { try await Task.sleep(for: timeout / 2) } catch { return }
            }
        }
        // A service that returns ends the others. The manager watches no longer once the service stops.
        try? await gracefulShutdown()
    }
}
