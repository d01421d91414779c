import CLibPQ
import Dispatch

/// A cancel request under way.
///
/// PQcancel opens a connection of its own and blocks without a deadline, so it runs on a thread of its own. At most
/// one per connection; tcp_user_timeout, which PQgetCancel takes over from the connection, bounds its life.
final class Cancellation: Sendable {
    private let over = DispatchSemaphore(value: 0)

    static func start(_ handle: OpaquePointer) -> Cancellation? {
        guard let request = PQgetCancel(handle) else { return nil }
        let cancellation = Cancellation()
        // Handed over to that thread alone, and a copy: the connection may be closed meanwhile.
        nonisolated(unsafe) let ownedRequest = request
        startThread(named: "postgres.cancel") {
            var message: [CChar] = Array(repeating: 0, count: 256)
            // Best effort: whoever cancels awaits the statement's end, and learns there whether it worked.
            _ = PQcancel(ownedRequest, &message, Int32(message.count))
            PQfreeCancel(ownedRequest)
            cancellation.over.signal()
        }
        return cancellation
    }

    /// PQcancel returns when the server has closed its side, which it does after it has signalled the backend.
    func isOver(within limit: Duration) -> Bool {
        let milliseconds = Int(limit.components.seconds) * 1_000
        guard over.wait(timeout: .now() + .milliseconds(milliseconds)) == .success else { return false }
        over.signal()
        return true
    }
}
