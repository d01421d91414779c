import Foundation

/// Runs blocking work on a thread of its own and awaits it. It is for rare work: starting, migrating, tests. It cannot
/// be cancelled: the work must have deadlines of its own, as `DatabaseConnection`'s methods do.
public func onThread<Value: Sendable>(
    named name: String = "postgres.work",
    _ work: @escaping @Sendable () throws -> Value
) async throws -> Value {
    try await withCheckedThrowingContinuation { continuation in
        startThread(named: name) {
            continuation.resume(with: Result { try work() })
        }
    }
}

/// Starts a thread. libpq blocks, so it needs threads of its own, and never an event loop or the cooperative pool.
package func startThread(named name: String, _ work: @escaping @Sendable () -> Void) {
    let thread = Thread(block: work)
    thread.name = name
    thread.start()
}
