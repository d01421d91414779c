import CLibPQ
import Dispatch

/// A cancel request in progress.
///
/// PQcancel opens a connection of its own and blocks without a deadline, so it runs on a thread of its own. There is at
/// most one per connection; the connection's tcp_user_timeout applies to it, too.
final class Cancellation: Sendable {
    private let end = DispatchSemaphore(value: 0)

    static func start(_ handle: OpaquePointer) -> Cancellation? {
        guard let request = PQgetCancel(handle) else { return nil }
        let cancellation = Cancellation()
        // Only that thread uses the request. It is a copy, so the connection may be closed meanwhile.
        nonisolated(unsafe) let ownedRequest = request
        startThread(named: "postgres.cancel") {
            var message: [CChar] = Array(repeating: 0, count: 256)
            // Errors are ignored: `awaitResult` shows whether the cancellation worked.
            _ = PQcancel(ownedRequest, &message, Int32(message.count))
            PQfreeCancel(ownedRequest)
            cancellation.end.signal()
        }
        return cancellation
    }

    /// Waits for PQcancel, which returns once the server has signalled the backend and closed the connection.
    func hasEnded(within limit: Duration) -> Bool {
        let milliseconds = Int(limit.components.seconds) * 1_000
        guard end.wait(timeout: .now() + .milliseconds(milliseconds)) == .success else { return false }
        end.signal()
        return true
    }
}
