import Foundation

/// The processes of one PostgreSQL cluster, found in /proc.
///
/// postmaster.pid alone is no proof: after a crash another process may have its number, above all in containers, where
/// numbers are small and begin again. A process belongs to the cluster if its name is postgres and its working
/// directory is the cluster's, as for all of PostgreSQL's processes.
struct ClusterProcesses: Sendable {
    /// Without symbolic links.
    let cluster: String

    var pidFile: String { cluster + "/postmaster.pid" }

    enum State: Equatable {
        case running(pid_t)
        /// `postgres --single`, started manually; it records its number negated.
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
        return name == "postgres\n" && FileSystem.resolved("/proc/\(process)/cwd") == cluster
    }

    /// Ends processes of a crashed server and removes its pid file, so that a new server can start. Requires the start
    /// lock, and `state` to be absent.
    ///
    /// PostgreSQL refuses to start while a backend of the old server lives, because two servers must not write the same
    /// files. Such a backend cannot commit without the other processes, so it is ended.
    func removeCrashed() async throws {
        try await endOrphans()
        // PostgreSQL itself replaces a stale file unless a process has the number; `state` showed that such a process
        // is not the cluster's. The data stays protected by PostgreSQL's check of shared memory, which does not need
        // the file.
        if let number = recordedNumber, kill(number, 0) == 0 || errno == EPERM {
            try FileSystem.remove(pidFile)
        }
    }

    private func endOrphans() async throws {
        var signal = SIGQUIT  // "immediate" shutdown: the processes that a clean one needs have ended
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
            if waited > .seconds(3) { signal = SIGKILL }  // a stopped process does not handle SIGQUIT
            for orphan in orphans { kill(orphan, signal) }
            try await Task.sleep(for: .milliseconds(20))
        }
    }

    private func orphans() -> [pid_t] {
        let processes = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        return processes.compactMap { pid_t($0) }.filter(belongs)
    }
}
