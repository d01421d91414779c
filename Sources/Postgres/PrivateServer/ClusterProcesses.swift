import Foundation

/// The processes of one PostgreSQL cluster, found in /proc, or on macOS by libproc.
///
/// postmaster.pid alone is no proof: after a crash another process may have its number, above all in containers, where
/// numbers are small and begin again. A process belongs to the cluster if its name is postgres and its working
/// directory is the cluster's, as for all of PostgreSQL's processes.
struct ClusterProcesses: Sendable {
    /// The cluster's directory without symbolic links.
    let cluster: String

    private static let pidFile = "postmaster.pid"

    enum State: Equatable {
        case running(pid_t)
        /// A `postgres --single` that was started manually; it records its number negated.
        case standalone(pid_t)
        case absent
    }

    /// - Throws: `.directoryUnusable` if the pid file cannot be read.
    func state() throws(PrivateServerError) -> State {
        guard let number = try recordedNumber() else { return .absent }
        guard belongs(abs(number)) else { return .absent }
        return number > 0 ? .running(number) : .standalone(-number)
    }

    private func recordedNumber() throws(PrivateServerError) -> pid_t? {
        let text = try AccountDirectory(cluster).text(of: ClusterProcesses.pidFile)
        return text?.split(separator: "\n").first.flatMap { pid_t($0) }
    }

    #if os(Linux)
    private func belongs(_ process: pid_t) -> Bool {
        guard process > 0, let name = try? String(contentsOfFile: "/proc/\(process)/comm", encoding: .utf8) else {
            return false
        }
        return name == "postgres\n" && FileSystem.resolved("/proc/\(process)/cwd") == cluster
    }

    private static var allProcesses: [pid_t] {
        let processes = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        return processes.compactMap { pid_t($0) }
    }
    #else
    private func belongs(_ process: pid_t) -> Bool {
        var name = [UInt8](repeating: 0, count: 64)
        guard process > 0, proc_name(process, &name, UInt32(name.count)) > 0,
            String(decoding: name.prefix { $0 != 0 }, as: UTF8.self) == "postgres"
        else { return false }
        var paths = proc_vnodepathinfo()
        let size = Int32(MemoryLayout<proc_vnodepathinfo>.size)
        guard proc_pidinfo(process, PROC_PIDVNODEPATHINFO, 0, &paths, size) == size else { return false }
        let directory = withUnsafeBytes(of: &paths.pvi_cdir.vip_path) { bytes in
            String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
        }
        return FileSystem.resolved(directory) == cluster
    }

    private static var allProcesses: [pid_t] {
        // The array has room for processes that start meanwhile.
        var processes = [pid_t](repeating: 0, count: Int(proc_listallpids(nil, 0)) + 64)
        let count = proc_listallpids(&processes, Int32(processes.count * MemoryLayout<pid_t>.stride))
        return Array(processes.prefix(max(0, Int(count))))
    }
    #endif

    /// Waits for a process of the cluster to end; returns false if it has not ended at the deadline.
    func waitForEnd(of process: pid_t, until deadline: ContinuousClock.Instant) async throws -> Bool {
        while true {
            // As process 1 of a container, this process inherits the server when pg_ctl ends, and must reap it.
            waitpid(process, nil, WNOHANG)
            if !belongs(process) { return true }
            guard ContinuousClock.now < deadline else { return false }
            try await Task.sleep(for: .milliseconds(5))
        }
    }

    /// Ends processes of a crashed server and removes its pid file, so that a new server can start. The caller must
    /// hold the start lock, and `state` must be absent.
    ///
    /// PostgreSQL refuses to start while a backend of the old server lives, because two servers must not write the same
    /// files. Such a backend cannot commit without the other processes, so it is ended.
    func removeCrashed() async throws {
        try await endOrphans()
        // PostgreSQL itself replaces a stale file unless a process has the number; `state` showed that such a process
        // is not the cluster's. The data stays protected by PostgreSQL's check of shared memory, which does not need
        // the file.
        if let number = try recordedNumber(), kill(number, 0) == 0 || errno == EPERM {
            try AccountDirectory(cluster).remove(ClusterProcesses.pidFile)
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
        ClusterProcesses.allProcesses.filter(belongs)
    }
}
