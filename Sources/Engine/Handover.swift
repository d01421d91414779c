import Postgres
import Synchronization

/// Carries what was opened from the thread that opened it to the one that uses it.
///
/// @unchecked Sendable: the value is put in by one thread, which never touches it again, and taken out once.
final class Handover<Opened>: @unchecked Sendable {
    private let lock = Mutex<Bool>(false)
    private var result: Result<Opened, PostgresError>?

    func put(_ result: Result<Opened, PostgresError>) {
        lock.withLock { _ in self.result = result }
    }

    func take() -> Result<Opened, PostgresError>? {
        lock.withLock { _ in
            defer { result = nil }
            return result
        }
    }
}
