import Foundation

/// Where everything of the private PostgreSQL lies, and whose it is.
///
///     HOME/postgres        the cluster (initdb's data directory), its owner's alone
///     HOME/postgres.log    what the server says
///     HOME/socket          the directory with the Unix socket, its owner's alone
///     HOME/start.lock      held while the server is being started or stopped
///     HOME/users.lock      shared by each process that uses the server
///
/// HOME is the data directory; or, where PostgreSQL's account cannot reach that (root's service below /root), a
/// directory of its own in /var/lib/headroom, and the data directory has a link to the cluster.
struct DataDirectory: Sendable {
    let path: String
    let home: String
    let account: ServiceAccount

    static let relocationRoot = "/var/lib/headroom"
    /// sizeof sockaddr_un.sun_path is 108 on Linux, with the terminating NUL.
    static let socketPathLimit = 107
    static let socketName = "/.s.PGSQL.5432"

    var cluster: String { home + "/postgres" }
    /// initdb's target. Renamed to `cluster` when it is complete, so that half a cluster is never taken for one.
    var unfinishedCluster: String { home + "/postgres.initializing" }
    var log: String { home + "/postgres.log" }
    var startLock: String { home + "/start.lock" }
    var usersLock: String { home + "/users.lock" }
    var link: String { path + "/postgres" }

    var socketDirectory: String {
        let nearby = home + "/socket"
        // A comma would separate two hosts in a connection string, and cannot be escaped there.
        let isUsable = (nearby + DataDirectory.socketName).utf8.count <= DataDirectory.socketPathLimit
        return isUsable && !nearby.contains(",") ? nearby : "/tmp/headroom-" + DataDirectory.digest(home)
    }

    /// PostgreSQL's major version, as initdb wrote it; nil without a cluster.
    var clusterVersion: Int? {
        guard let text = try? String(contentsOfFile: cluster + "/PG_VERSION", encoding: .utf8) else { return nil }
        return Int(text.prefix { $0.isNumber })
    }

    /// Looks only, and makes nothing.
    ///
    /// - Throws: `.clusterMissing`.
    static func requireCluster(in path: String) throws(PrivateServerError) {
        let wanted = absolute(path)
        // The link may be missing where making the cluster was interrupted.
        let relocated = Files.resolved(wanted).map { relocationRoot + "/" + digest($0) + "/postgres" }
        guard Files.kind(wanted + "/postgres") == nil, relocated.flatMap(Files.kind) == nil else { return }
        throw PrivateServerError(
            .clusterMissing,
            """
            there is no database in \(wanted); run this in the directory where the service was started, or name the \
            service's data directory (--data-dir, HEADROOM_DATA_DIR), or a PostgreSQL server (--database-url, DATABASE_URL). \
            Only headroom serve makes a database
            """
        )
    }

    private static func absolute(_ path: String) -> String {
        path.hasPrefix("/") ? path : FileManager.default.currentDirectoryPath + "/" + path
    }

    /// Finds or makes the data directory; the cluster may not be there yet.
    static func prepare(_ path: String) async throws -> DataDirectory {
        let wanted = absolute(path)
        // pg_ctl puts the paths between double quotes on a shell's command line.
        guard !path.isEmpty, !wanted.utf8.contains(where: { $0 < 0x20 || "\"$`\\".utf8.contains($0) }) else {
            throw PrivateServerError(
                .directoryUnusable,
                "the data-dir must be a path without quotes, $, backquotes, backslashes and control characters"
            )
        }
        try Files.makeDirectories(wanted)
        guard let resolved = Files.resolved(wanted) else { throw Files.failed("reach", wanted) }
        return try await locate(resolved)
    }

    private static func locate(_ path: String) async throws -> DataDirectory {
        let link = path + "/postgres"
        if Files.kind(link)?.isSymbolicLink == true {
            guard let cluster = Files.resolved(link) else {
                throw PrivateServerError(
                    .directoryUnusable,
                    "\(link) points to a cluster that is gone; restore it, or remove the link to start with an empty one"
                )
            }
            return try owned(path, home: (cluster as NSString).deletingLastPathComponent)
        }
        let account = try owned(path, home: path).account
        guard try await !canReach(path, account) else { return try owned(path, home: path) }
        guard Files.kind(link) == nil else {
            throw PrivateServerError(
                .directoryUnusable,
                "PostgreSQL runs as \(account.name), who cannot reach \(path); let that user enter the directories above"
            )
        }
        let home = relocationRoot + "/" + digest(path)
        try Files.makeDirectories(home)
        return try owned(path, home: home)
    }

    private static func owned(_ path: String, home: String) throws(PrivateServerError) -> DataDirectory {
        let account = try ServiceAccount.choose(clusterOwner: Files.kind(home + "/postgres")?.owner)
        return DataDirectory(path: path, home: home, account: account)
    }

    /// Asked of the system itself, as that account: groups and access lists count, too.
    private static func canReach(_ path: String, _ account: ServiceAccount) async throws -> Bool {
        guard account.isLent else { return true }
        return try await ProgramRunner(account: account).run("/bin/sh", ["-c", "test -x \"$1\"", "sh", path]).succeeded
    }

    /// Makes what PostgreSQL needs before it starts.
    func prepareForStart() throws(PrivateServerError) {
        try Files.makePrivateDirectory(socketDirectory, for: account)
        if home != path, Files.kind(link) == nil, symlink(cluster, link) != 0 { throw Files.failed("make", link) }
        // 10 MB of log is more than anybody reads; what came before the start before this one goes.
        if let size = try? FileManager.default.attributesOfItem(atPath: log)[.size] as? Int, size > 10_000_000 {
            try Files.move(log, to: log + ".1")
        }
        // Made here, as the account may not make files beside its cluster.
        let file = open(log, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else { throw Files.failed("open", log) }
        defer { close(file) }
        guard !account.isLent || fchown(file, account.user, account.group) == 0 else {
            throw Files.failed("give away", log)
        }
    }

    /// 16 hexadecimal digits for a path (FNV-1a, 64 bits): a short name, not a secret.
    static func digest(_ path: String) -> String {
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for byte in path.utf8 {
            hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01b3
        }
        let digits = String(hash, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }
}
