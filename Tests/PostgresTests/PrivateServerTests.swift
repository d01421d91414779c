import Foundation
import Logging
import TestSupport
import Testing

@testable import Postgres

/// Each test has a data directory, and so a PostgreSQL, of its own. One after the other: each takes some seconds of
/// the machine.
@Suite("A private server", .serialized)
struct PrivateServerTests {
    /// - Parameter isDurable: as in production; fsync makes it several times slower.
    private func server(_ directory: String, isDurable: Bool = false) -> PrivateServer {
        PrivateServer(
            dataDirectory: directory,
            logger: .silent,
            additionalSettings: isDurable ? [] : [("fsync", "off")],
            stopLimitSeconds: 120
        )
    }

    private func query(_ conninfo: String, _ sql: String) async throws -> String {
        try await onThread {
            let connection = try DatabaseConnection.connect(conninfo)
            defer { connection.close() }
            return try connection.query("SELECT (\(sql))::text", deadline: .now + waitLimit).text(0, 0)
        }
    }

    private func postmaster(_ directory: String) throws -> pid_t {
        let text = try String(contentsOfFile: directory + "/postgres/postmaster.pid", encoding: .utf8)
        return try #require(text.split(separator: "\n").first.flatMap { pid_t($0) })
    }

    /// Whether the process has ended; a zombie has.
    private func hasEnded(_ process: pid_t) -> Bool {
        guard let status = try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8) else { return true }
        if status.split(separator: ")").last?.hasPrefix(" Z") ?? true { return true }
        // The kernel closes its files and shared memory, then leaves its directory, and later makes it a zombie.
        return (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/\(process)/cwd")) == nil
    }

    /// All PostgreSQL processes of this directory.
    private func processes(_ directory: String) throws -> [pid_t] {
        let cluster = try #require(realpath(directory + "/postgres", nil).map { String(cString: $0) })
        return try FileManager.default.contentsOfDirectory(atPath: "/proc").compactMap { pid_t($0) }.filter { process in
            guard let working = realpath("/proc/\(process)/cwd", nil) else { return false }
            defer { free(working) }
            return String(cString: working) == cluster
        }
    }

    @Test("a server is created, started, stopped and started again") func lifetime() async throws {
        let directory = try TemporaryDirectory()
        let first = server(directory.path + "/data dir", isDurable: true)
        let running = try await first.start()
        #expect(!running.wasAdopted && running.psqlCommand.hasPrefix("psql '"))
        let settings = """
            SELECT concat_ws(' ', current_user, current_database(), current_setting('listen_addresses') = '',
                current_setting('data_checksums'), current_setting('server_encoding'), current_setting('fsync'),
                current_setting('synchronous_commit'), current_setting('TimeZone'), current_setting('max_wal_size'),
                current_setting('unix_socket_permissions'))
            """
        #expect(try await query(running.conninfo, settings) == "headroom headroom t on UTF8 on on UTC 4GB 0700")
        let database = try await onThread {
            let connection = try DatabaseConnection.connect(running.conninfo)
            defer { connection.close() }
            try connection.execute("CREATE TABLE public.kept AS SELECT 42 AS n", deadline: .now + waitLimit)
            return connection.serverVersion
        }
        #expect(database >= 140_000)
        let process = try postmaster(directory.path + "/data dir")
        let attributes = try FileManager.default.attributesOfItem(atPath: directory.path + "/data dir/socket")
        #expect(attributes[.posixPermissions] as? Int == 0o700)
        await first.stop()
        await first.stop()
        #expect(hasEnded(process))
        let second = server(directory.path + "/data dir", isDurable: true)
        #expect(try await query(second.start().conninfo, "SELECT n FROM public.kept") == "42")
        await second.stop()
    }

    @Test("the last process to stop stops the server") func lastUser() async throws {
        let directory = try TemporaryDirectory()
        let first = server(directory.path)
        let second = server(directory.path)
        async let firstRunning = first.start()
        async let secondRunning = second.start()
        let running = try await [firstRunning, secondRunning]
        #expect(running[0].conninfo == running[1].conninfo)
        #expect(running.filter(\.wasAdopted).count == 1)
        let process = try postmaster(directory.path)
        await first.stop()
        #expect(try await query(running[1].conninfo, "SELECT 1") == "1")
        await second.stop()
        #expect(hasEnded(process))
    }

    @Test("a stop waits for the end of the process, not only of its pid file") func stopWaits() async throws {
        let directory = try TemporaryDirectory()
        let cluster = try #require(FileSystem.resolved(directory.path))
        // Found by its name and its working directory; it ends with its standard input.
        try FileManager.default.copyItem(atPath: "/bin/cat", toPath: cluster + "/postgres")
        let process = Process()
        let input = Pipe()
        process.executableURL = URL(filePath: cluster + "/postgres")
        process.currentDirectoryURL = URL(filePath: cluster)
        process.standardInput = input
        try process.run()
        let processes = ClusterProcesses(cluster: cluster)
        let number = process.processIdentifier
        #expect(try await !processes.waitForEnd(of: number, until: .now))
        try input.fileHandleForWriting.close()
        #expect(try await processes.waitForEnd(of: number, until: .now + waitLimit))
        #expect(hasEnded(number))
    }

    @Test("a running server is adopted, and a crashed one recovered") func adoption() async throws {
        let directory = try TemporaryDirectory()
        let first = server(directory.path)
        let conninfo = try await first.start().conninfo
        #expect(try await first.start().wasAdopted)
        // A session in the middle of a statement outlives the postmaster; so does a stopped one, even a SIGQUIT.
        let connection = try await onThread {
            let options = ConnectionOptions(database: DatabaseTopology(conninfo), connectTimeout: waitLimit)
            let connection = try DatabaseConnection.connect(options)
            let sql = "CREATE TABLE public.kept AS SELECT 42 AS n"
            try connection.execute(sql, deadline: .now + waitLimit)
            let process = try connection.query("SELECT pg_backend_pid()", deadline: .now + waitLimit).int32(0, 0)
            try connection.prepare("sleep", "SELECT pg_sleep(3600)", deadline: .now + waitLimit)
            try connection.send(prepared: "sleep", Parameters())
            _ = try connection.awaitResult(until: .now)
            kill(process, SIGSTOP)
            return ConnectionBox(connection)
        }
        let process = try postmaster(directory.path)
        kill(process, SIGKILL)
        try await waitUntil("the postmaster is dead") { hasEnded(process) }
        let again = try await first.start()
        #expect(!again.wasAdopted)
        #expect(try postmaster(directory.path) != process)
        #expect(try await query(conninfo, "SELECT n FROM public.kept") == "42")
        connection.close()
        await first.stop()
        // The last ones end after the pid file was removed, for which a stop waits.
        try await waitUntil("all its processes have ended") { try processes(directory.path).allSatisfy(hasEnded) }
    }

    @Test("a stale pid file with another process's number is replaced") func stalePidFile() async throws {
        let directory = try TemporaryDirectory()
        let first = server(directory.path)
        _ = try await first.start()
        let file = directory.path + "/postgres/postmaster.pid"
        let lines = try String(contentsOfFile: file, encoding: .utf8).split(separator: "\n").dropFirst()
        await first.stop()
        // A process that lives, is not PostgreSQL, and could be signalled by the account.
        let stranger = Process()
        stranger.executableURL = URL(filePath: "/usr/bin/setpriv")
        let isRoot = getuid() == 0
        stranger.arguments = (isRoot ? ["--reuid=postgres", "--clear-groups"] : []) + ["sleep", "3600"]
        stranger.standardOutput = FileHandle.nullDevice
        stranger.standardError = FileHandle.nullDevice
        try stranger.run()
        defer { kill(stranger.processIdentifier, SIGKILL) }  // it may have inherited a mask that blocks SIGTERM
        let text = ([Substring("\(stranger.processIdentifier)")] + lines).joined(separator: "\n")
        try Data(text.utf8).write(to: URL(filePath: file), options: [])
        let running = try await first.start()
        #expect(!running.wasAdopted && stranger.isRunning)
        await first.stop()
    }

    @Test("an incomplete cluster of an interrupted start is removed") func interrupted() async throws {
        let directory = try TemporaryDirectory()
        let unfinished = directory.path + "/postgres.initializing"
        try FileManager.default.createDirectory(atPath: unfinished, withIntermediateDirectories: true)
        try Data("15\n".utf8).write(to: URL(filePath: unfinished + "/PG_VERSION"))
        let first = server(directory.path)
        #expect(try await query(first.start().conninfo, "SELECT 1") == "1")
        #expect(!FileManager.default.fileExists(atPath: unfinished))
        await first.stop()
    }

    @Test("a long path has its socket in /tmp") func longPath() async throws {
        let directory = try TemporaryDirectory()
        let long = directory.path + "/" + String(repeating: "long", count: 25) + "/it's, far"
        let first = server(long)
        let running = try await first.start()
        #expect(running.conninfo.hasPrefix("host=/tmp/headroom-"))
        #expect(try await query(running.conninfo, "SELECT 1") == "1")
        await first.stop()
        let socket = try #require(running.conninfo.split(separator: " ").first).dropFirst(5)
        try FileManager.default.removeItem(atPath: String(socket))
    }

    @Test("a cluster of another major version is refused") func otherVersion() async throws {
        let directory = try TemporaryDirectory()
        let cluster = directory.path + "/postgres"
        try FileManager.default.createDirectory(atPath: cluster, withIntermediateDirectories: true)
        try Data("9\n".utf8).write(to: URL(filePath: cluster + "/PG_VERSION"))
        if getuid() == 0 { chown(cluster, try #require(getpwnam("postgres")).pointee.pw_uid, 0) }
        let error = await #expect(throws: PrivateServerError.self) { _ = try await server(directory.path).start() }
        #expect(error?.code == .versionMismatch && error?.message.contains("install PostgreSQL 9") == true)
    }

    @Test("a directory that is not a cluster is not changed") func notACluster() async throws {
        let directory = try TemporaryDirectory()
        let precious = directory.path + "/postgres/precious"
        try FileManager.default.createDirectory(atPath: precious, withIntermediateDirectories: true)
        let error = await #expect(throws: PrivateServerError.self) { _ = try await server(directory.path).start() }
        #expect(error?.code == .directoryUnusable)
        #expect(FileManager.default.fileExists(atPath: precious))
    }

    @Test("nothing is read through a link, a pipe or a hard link in place of a file of the cluster")
    func replacedFiles() async throws {
        let directory = try TemporaryDirectory()
        let first = server(directory.path)
        _ = try await first.start()
        await first.stop()
        let cluster = directory.path + "/postgres"
        let secret = directory.path + "/secret"
        try Data("secret".utf8).write(to: URL(filePath: secret))
        chmod(secret, 0o600)
        // Only the service of root reads with more rights than the cluster's owner.
        let replacements: [(String) -> Int32] =
            [{ symlink(secret, $0) }, { mkfifo($0, 0o600) }] + (getuid() == 0 ? [{ link(secret, $0) }] : [])
        for name in ["postgresql.conf", "PG_VERSION", "postmaster.pid"] {
            let (path, kept) = (cluster + "/" + name, directory.path + "/kept")
            let isThere = rename(path, kept) == 0
            for replace in replacements {
                #expect(replace(path) == 0)
                let error = await #expect(throws: PrivateServerError.self) { _ = try await first.start() }
                #expect(error?.code == .directoryUnusable && error?.message.contains(name) == true)
                unlink(path)
            }
            if isThere { rename(kept, path) }
        }
        for case let file as String in try #require(FileManager.default.enumerator(atPath: cluster)) {
            let text = try? String(contentsOfFile: cluster + "/" + file, encoding: .utf8)
            #expect(text?.contains("secret") != true, "\(file)")
        }
        #expect(try await !first.start().wasAdopted)
        await first.stop()
    }

    @Test("an unfinished cluster is removed without what a link in it leads to") func unfinishedCluster() async throws {
        let directory = try TemporaryDirectory()
        let (precious, unfinished) = (directory.path + "/precious", directory.path + "/postgres.initializing")
        for path in [precious, unfinished + "/base"] {
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        }
        try Data("x".utf8).write(to: URL(filePath: precious + "/file"))
        #expect(symlink(precious, unfinished + "/base/link") == 0)
        if getuid() == 0, let owner = getpwnam("postgres")?.pointee.pw_uid {
            for path in [unfinished, unfinished + "/base"] { chown(path, owner, 0) }
        }
        let first = server(directory.path)
        _ = try await first.start()
        await first.stop()
        #expect(FileManager.default.fileExists(atPath: precious + "/file"))
        #expect(!FileManager.default.fileExists(atPath: unfinished))
    }

    @Test("the error of a failed start has the reason from the log") func failedStart() async throws {
        let directory = try TemporaryDirectory()
        let first = server(directory.path)
        let conninfo = try await first.start().conninfo
        _ = try await onThread {
            let connection = try DatabaseConnection.connect(conninfo)
            defer { connection.close() }
            let sql = "ALTER SYSTEM SET shared_preload_libraries = 'no_such_library'"
            try connection.execute(sql, deadline: .now + waitLimit)
        }
        await first.stop()
        let error = await #expect(throws: PrivateServerError.self) { _ = try await first.start() }
        #expect(error?.code == .startFailed && error?.message.contains("no_such_library") == true)
        // The last ones end after the pid file was removed, for which a stop waits.
        try await waitUntil("all its processes have ended") { try processes(directory.path).allSatisfy(hasEnded) }
    }

    @Test(
        "a directory that the account cannot reach has its cluster in /var/lib/headroom",
        .enabled(if: getuid() == 0, "only root runs PostgreSQL as another account")
    )
    func unreachable() async throws {
        let directory = try TemporaryDirectory()
        let closed = directory.path + "/closed"
        try FileManager.default.createDirectory(
            atPath: closed,
            withIntermediateDirectories: false,
            attributes: [.posixPermissions: 0o700]
        )
        let first = server(closed + "/data")
        let running = try await first.start()
        let link = try FileManager.default.destinationOfSymbolicLink(atPath: closed + "/data/postgres")
        #expect(link.hasPrefix("/var/lib/headroom/") && running.logFile.hasPrefix("/var/lib/headroom/"))
        #expect(try await query(running.conninfo, "SELECT 1") == "1")
        let second = server(closed + "/data")
        #expect(try await second.start().wasAdopted)
        let process = try postmaster(closed + "/data")
        await first.stop()
        #expect(!hasEnded(process))
        await second.stop()
        #expect(hasEnded(process))
        try FileManager.default.removeItem(atPath: (link as NSString).deletingLastPathComponent)
    }
}

/// Keeps a connection of another thread alive.
private final class ConnectionBox: @unchecked Sendable {
    // Invariant: after the thread that made the connection has ended, only `close` is called, by one task.
    private let connection: DatabaseConnection

    init(_ connection: DatabaseConnection) {
        self.connection = connection
    }

    func close() { connection.close() }
}
