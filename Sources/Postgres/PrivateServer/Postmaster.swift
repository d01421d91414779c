import Foundation

/// The server processes of one cluster, as the kernel shows them.
///
/// postmaster.pid alone proves nothing: after a crash the number may be another process's, which above all happens in
/// containers, where numbers are small and start anew. A process counts if it is called postgres and works in the
/// cluster's directory, as all of PostgreSQL's processes do.
struct Postmaster: Sendable {
    /// Without symbolic links.
    let cluster: String

    var pidFile: String { cluster + "/postmaster.pid" }

    enum State: Equatable {
        case running(pid_t)
        /// `postgres --single`, started by hand; it writes its number negated.
        case standalone(pid_t)
        case absent
    }

    var state: State {
        guard let number = recordedNumber else { return .absent }
        guard belongs(abs(number)) else { return .absent }
        return number > 0 ? .running(number) : .standalone(-number)
    }

    private var recordedNumber: pid_t? {
        guard let text = try? String(contentsOfFile: pidFile, encoding: .utf8) else { return nil }
        return text.split(separator: "\n").first.flatMap { pid_t($0) }
    }

    private func belongs(_ process: pid_t) -> Bool {
        guard process > 0, let name = try? String(contentsOfFile: "/proc/\(process)/comm", encoding: .utf8) else {
            return false
        }
        return name == "postgres\n" && Files.resolved("/proc/\(process)/cwd") == cluster
    }

    /// Clears what a crashed server left, so that a new one can start. Only with the start lock held, and only when
    /// `state` is absent.
    ///
    /// PostgreSQL itself refuses to start while a backend of the old server lives, rightly: two generations must not
    /// write the same files. Such a backend has no future, since its commits need the others; so it is ended.
    func clearRemains() async throws {
        try await endOrphans()
        // PostgreSQL recovers from a stale file by itself unless some process has the number; and that one is not
        // ours, as we just saw. What protects the data is the shared memory check, which does not need the file.
        if let number = recordedNumber, kill(number, 0) == 0 || errno == EPERM {
            try Files.remove(pidFile)
        }
    }

    private func endOrphans() async throws {
        var signal = SIGQUIT  // "immediate": no cleaning up, since there is nobody left to clean up with
        let start = ContinuousClock.now
        while true {
            let orphans = orphans()
            if orphans.isEmpty { return }
            let waited = ContinuousClock.now - start
            if waited > .seconds(10) {
                throw PrivateServerError(
                    .startFailed,
                    "processes of a crashed PostgreSQL do not end: \(orphans); end them (kill -9), then start again"
                )
            }
            if waited > .seconds(3) { signal = SIGKILL }  // stopped processes do not hear SIGQUIT
            for orphan in orphans { kill(orphan, signal) }
            try await Task.sleep(for: .milliseconds(20))
        }
    }

    private func orphans() -> [pid_t] {
        let processes = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        return processes.compactMap { pid_t($0) }.filter(belongs)
    }
}
