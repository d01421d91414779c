import Foundation

/// A directory below /tmp that a watchdog deletes when the test process ends, also if that is killed. The watchdog also
/// stops a PostgreSQL server in it.
public final class TemporaryDirectory: Sendable {
    public let path: String
    /// A file that is locked while this process lives. The watchdog waits for the lock.
    private let lifeline: Int32

    public init(prefix: String = "headroom-test-") throws {
        var template = Array("/tmp/\(prefix)XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw POSIXError(.EIO) }
        path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        // PostgreSQL may run as another user that needs access to subdirectories.
        guard chmod(path, 0o755) == 0 else { throw POSIXError(.EIO) }
        // Closed on exec, because PostgreSQL would keep the lock.
        lifeline = open(path + "/lifeline", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard lifeline >= 0, flock(lifeline, LOCK_EX) == 0 else { throw POSIXError(.EIO) }
        try TemporaryDirectory.startWatchdog(path)
    }

    deinit {
        close(lifeline)
    }

    /// In a session of its own, so that Ctrl-C does not end it. `-QUIT` is PostgreSQL's immediate shutdown, which loses
    /// data.
    private static func startWatchdog(_ path: String) throws {
        let script = """
            flock --exclusive "$1/lifeline" true
            for file in "$1"/postgres/postmaster.pid "$1"/*/postgres/postmaster.pid; do
                process=$(head -1 "$file" 2> /dev/null) || continue
                [ "$(cat "/proc/$process/comm")" = postgres ] && kill -QUIT "$process"
            done
            for attempt in 1 2 3 4 5 6 7 8 9 10; do
                rm -rf "$1" && exit
                sleep 0.2
            done
            """
        let watchdog = Process()
        watchdog.executableURL = URL(filePath: "/usr/bin/setsid")
        watchdog.arguments = ["sh", "-c", script, "watchdog", path]
        watchdog.standardInput = FileHandle.nullDevice
        watchdog.standardOutput = FileHandle.nullDevice
        watchdog.standardError = FileHandle.nullDevice
        try watchdog.run()
    }
}
