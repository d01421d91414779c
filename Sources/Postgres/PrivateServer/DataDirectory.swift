import Foundation

/// The files of the private PostgreSQL, and their owner.
///
///     HOME/postgres        the cluster (initdb's data directory), accessible to its owner only
///     HOME/postgres.log    the server's log
///     HOME/socket          the directory of the Unix socket, accessible to its owner only
///     HOME/start.lock      held while the server is being started or stopped
///     HOME/users.lock      shared by each process that uses the server
///
/// HOME is the data directory. If PostgreSQL's account cannot reach it (a service of root below /root), HOME is a
/// directory in /var/lib/headroom, and the data directory has a link to the cluster.
struct DataDirectory: Sendable {
    let path: String
    let home: String
    let account: ServiceAccount

    static let relocationRoot = "/var/lib/headroom"
    /// The most bytes of a socket's path. sizeof sockaddr_un.sun_path is 108 on Linux and 104 on macOS, with the
    /// terminating NUL.
    #if os(Linux)
    static let socketPathLimit = 107
    #else
    static let socketPathLimit = 103
    #endif
    static let socketName = "/.s.PGSQL.5432"

    var cluster: String { home + "/postgres" }
    /// initdb's target. It is renamed to `cluster` once complete, so that an incomplete cluster is never used.
    var unfinishedCluster: String { home + "/postgres.initializing" }
    var log: String { home + "/postgres.log" }
    var startLock: String { home + "/start.lock" }
    var usersLock: String { home + "/users.lock" }
    var link: String { path + "/postgres" }

    var socketDirectory: String {
        let nearby = home + "/socket"
        // In a connection string a comma separates two hosts, and cannot be escaped.
        let isUsable = (nearby + DataDirectory.socketName).utf8.count <= DataDirectory.socketPathLimit
        return isUsable && !nearby.contains(",") ? nearby : "/tmp/headroom-" + DataDirectory.digest(home)
    }

    /// Reads the cluster's major version of PostgreSQL; nil without a cluster.
    ///
    /// - Throws: `.directoryUnusable` if the version cannot be read.
    func clusterVersion() throws(PrivateServerError) -> Int? {
        guard FileSystem.kind(cluster) != nil else { return nil }
        return try AccountDirectory(cluster).text(of: "PG_VERSION").flatMap { Int($0.prefix { $0.isNumber }) }
    }

    /// Makes sure that a cluster exists. It changes nothing.
    ///
    /// - Throws: `.clusterMissing` if none exists.
    static func requireCluster(in path: String) throws(PrivateServerError) {
        let requested = absolute(path)
        // The link may be missing if the creation of the cluster was interrupted.
        let relocated = FileSystem.resolved(requested).map { relocationRoot + "/" + digest($0) + "/postgres" }
        guard FileSystem.kind(requested + "/postgres") == nil, relocated.flatMap(FileSystem.kind) == nil else { return }
        throw PrivateServerError(
            .clusterMissing,
            """
            there is no database in \(requested); run this in the directory where the service was started, or name the \
            service's data directory (--data-dir, HEADROOM_DATA_DIR), or a PostgreSQL server (--database-url, DATABASE_URL). \
            Only headroom serve creates a database
            """
        )
    }

    private static func absolute(_ path: String) -> String {
        path.hasPrefix("/") ? path : FileManager.default.currentDirectoryPath + "/" + path
    }

    /// Finds or creates the data directory. The cluster may not exist yet.
    static func prepare(_ path: String) async throws -> DataDirectory {
        let requested = absolute(path)
        // pg_ctl passes the paths to a shell in double quotes.
        guard !path.isEmpty, !requested.utf8.contains(where: { $0 < 0x20 || "\"$`\\".utf8.contains($0) }) else {
            throw PrivateServerError(
                .directoryUnusable,
                "the data-dir must be a path without quotes, $, backquotes, backslashes and control characters"
            )
        }
        try FileSystem.makeDirectories(requested)
        guard let resolved = FileSystem.resolved(requested) else { throw FileSystem.failed("reach", requested) }
        return try await locate(resolved)
    }

    private static func locate(_ path: String) async throws -> DataDirectory {
        let link = path + "/postgres"
        if FileSystem.kind(link)?.isSymbolicLink == true {
            guard let cluster = FileSystem.resolved(link) else {
                throw PrivateServerError(
                    .directoryUnusable,
                    "\(link) points to a missing cluster; restore it, or remove the link to start with an empty one"
                )
            }
            return try owned(path, home: (cluster as NSString).deletingLastPathComponent)
        }
        let account = try owned(path, home: path).account
        guard try await !canReach(path, account) else { return try owned(path, home: path) }
        guard FileSystem.kind(link) == nil else {
            throw PrivateServerError(
                .directoryUnusable,
                "PostgreSQL runs as \(account.name), which cannot reach \(path); allow that user to enter the directories above"
            )
        }
        let home = relocationRoot + "/" + digest(path)
        try FileSystem.makeDirectories(home)
        return try owned(path, home: home)
    }

    private static func owned(_ path: String, home: String) throws(PrivateServerError) -> DataDirectory {
        let account = try ServiceAccount.choose(clusterOwner: FileSystem.kind(home + "/postgres")?.owner)
        return DataDirectory(path: path, home: home, account: account)
    }

    /// Whether the account can reach the path. A process of that account tests it, because groups and access lists
    /// count, too.
    private static func canReach(_ path: String, _ account: ServiceAccount) async throws -> Bool {
        guard account.isOther else { return true }
        return try await ProgramRunner(account: account).run("/bin/sh", ["-c", "test -x \"$1\"", "sh", path]).succeeded
    }

    /// Creates the files that PostgreSQL needs before it starts.
    func prepareForStart() throws(PrivateServerError) {
        try FileSystem.makePrivateDirectory(socketDirectory, for: account)
        if home != path, FileSystem.kind(link) == nil, symlink(cluster, link) != 0 {
            throw FileSystem.failed("create", link)
        }
        // Above 10 MB the log is rotated; one old log is kept.
        if let size = try? FileManager.default.attributesOfItem(atPath: log)[.size] as? Int, size > 10_000_000 {
            try FileSystem.move(log, to: log + ".1")
        }
        // The service creates the log, because the account may not create files beside its cluster.
        let file = open(log, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0o600)
        guard file >= 0 else { throw FileSystem.failed("open", log) }
        defer { close(file) }
        guard !account.isOther || fchown(file, account.user, account.group) == 0 else {
            throw FileSystem.failed("give away", log)
        }
    }

    /// Returns 16 hexadecimal digits for a path (FNV-1a, 64 bits): a short name, not a secret.
    static func digest(_ path: String) -> String {
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for byte in path.utf8 {
            hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01b3
        }
        let digits = String(hash, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }
}
