import Foundation

/// A lock file (flock). The kernel releases it however the process ends; the file itself stays, because removing it
/// would let two processes hold locks on two files of the same name.
final class DirectoryLock: Sendable {
    private let descriptor: Int32
    private let path: String

    /// - Throws: `.directoryUnusable` if the file cannot be opened.
    init(_ path: String) throws(PrivateServerError) {
        // Close on exec, or PostgreSQL would inherit the lock and hold it when we are long gone.
        descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw Files.failed("open the lock file", path) }
        self.path = path
    }

    deinit {
        close(descriptor)
    }

    func trySharing() -> Bool {
        flock(descriptor, LOCK_SH | LOCK_NB) == 0
    }

    /// Where the lock was shared before, failing loses it: flock converts by releasing first.
    func tryExclusive() -> Bool {
        flock(descriptor, LOCK_EX | LOCK_NB) == 0
    }

    func release() {
        flock(descriptor, LOCK_UN)
    }

    /// Polls, as flock has no deadline.
    func waitExclusive(until deadline: ContinuousClock.Instant) async throws {
        while !tryExclusive() {
            guard ContinuousClock.now < deadline else {
                throw PrivateServerError(
                    .directoryUnusable,
                    "another process has been starting or stopping the PostgreSQL of this data directory for long; "
                        + "see who holds \(path) (fuser -v), or choose another data-dir"
                )
            }
            try await Task.sleep(for: .milliseconds(20))
        }
    }
}
