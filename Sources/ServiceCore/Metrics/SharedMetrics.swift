import Engine
import LineProtocol
import NIOCore
import Synchronization

/// The counters of `LoopMetrics` for several threads: a lock in the place of the event loop.
package final class SharedMetrics: Sendable {
    let metrics = LoopMetrics()
    private let lock = Mutex(())

    /// Counts a command and its answer. Errors are counted by `count(_:)`.
    package func count(_ command: Command, _ outcome: Outcome, submittedAt: NIODeadline) {
        lock.withLock { _ in
            // The time is read under the lock: the recorder's seconds must not go back.
            let now = NIODeadline.now()
            let microseconds = LoopMetrics.microseconds(now) &- LoopMetrics.microseconds(submittedAt)
            metrics.count(DecodedRequest.command(command))
            if case .answer = outcome { metrics.count(outcome) }
            metrics.latencies.begin(second: LoopMetrics.second(now))
            metrics.latencies.record(microseconds: microseconds)
            metrics.latencies.addToTotal(microseconds: UInt64(microseconds))
        }
    }

    /// Counts an error, whether a command was made of the request or not.
    package func count(_ code: ReplyError.Code) {
        lock.withLock { _ in metrics.count(code) }
    }
}
