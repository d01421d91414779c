import Foundation

/// A lock file (flock). The kernel releases the lock when the process ends. The file stays, because after a removal two
/// processes could hold locks on two files of the same name.
final class DirectoryLock: Sendable {
    private let descriptor: Int32
    private let path: String

    /// - Throws: `.directoryUnusable` if the file cannot be opened.
    init(_ path: String) throws(PrivateServerError) {
        // The descriptor is closed on exec, because PostgreSQL would inherit the lock and hold it after this process
        // has ended.
        descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw FileSystem.failed("open the lock file", path) }
        self.path = path
    }

    deinit {
        close(descriptor)
    }

    func trySharing() -> Bool {
        flock(descriptor, LOCK_SH | LOCK_NB) == 0
    }

    /// Tries to take the lock alone. If this fails, a shared lock that was held before is lost: flock converts a lock
    /// by releasing it first.
    func tryExclusive() -> Bool {
        flock(descriptor, LOCK_EX | LOCK_NB) == 0
    }

    func release() {
        flock(descriptor, LOCK_UN)
    }

    /// Waits for the lock by polling, because flock has no timeout.
    func waitExclusive(until deadline: ContinuousClock.Instant) async throws {
        while !tryExclusive() {
            guard ContinuousClock.now < deadline else {
                throw PrivateServerError(
                    .directoryUnusable,
                    "another process has been starting or stopping the PostgreSQL of this data directory for minutes; "
                        + "find it by its lock on \(path) (fuser -v), or choose another data-dir"
                )
            }
            try await Task.sleep(for: .milliseconds(20))
        }
    }
}
