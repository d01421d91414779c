import Foundation

/// The account that runs PostgreSQL: the service's own, or another one if that is root, which PostgreSQL refuses.
struct ServiceAccount: Sendable, Hashable {
    let name: String
    let user: uid_t
    let group: gid_t
    /// Whether it is another account than the service's own, so that files must be given to it.
    let isOther: Bool

    static let environmentVariable = "HEADROOM_POSTGRES_USER"

    static func current() -> ServiceAccount {
        ServiceAccount(name: named(getuid()) ?? "\(getuid())", user: getuid(), group: getgid(), isOther: false)
    }

    /// - Parameter clusterOwner: the owner of the cluster, if it exists. PostgreSQL must run as that user.
    static func choose(clusterOwner: uid_t?) throws(PrivateServerError) -> ServiceAccount {
        guard geteuid() == 0 else {
            if let clusterOwner, clusterOwner != geteuid() {
                throw PrivateServerError(
                    .directoryUnusable,
                    "the data directory's PostgreSQL belongs to \(named(clusterOwner) ?? "user \(clusterOwner)"), and "
                        + "only that user or root can run it; choose another data-dir, or run as that user"
                )
            }
            return current()
        }
        #if !os(Linux)
        throw PrivateServerError(
            .directoryUnusable,
            "PostgreSQL refuses to run as root; run this as another user, or give the service a database-url"
        )
        #else
        if let clusterOwner, clusterOwner != 0, let account = other(getpwuid(clusterOwner)) { return account }
        if let name = ProcessInfo.processInfo.environment[environmentVariable] {
            guard let account = other(getpwnam(name)) else {
                throw PrivateServerError(
                    .directoryUnusable,
                    "\(environmentVariable)=\(name) is not an unprivileged user of this system; PostgreSQL refuses to run as "
                        + "root, name an existing user"
                )
            }
            return account
        }
        guard let account = other(getpwnam("postgres")) ?? other(getpwnam("nobody")) else {
            throw PrivateServerError(
                .directoryUnusable,
                "PostgreSQL refuses to run as root, and this system has neither a user postgres nor a user nobody; "
                    + "create one and name it in \(environmentVariable)"
            )
        }
        return account
        #endif
    }

    private static func other(_ entry: UnsafeMutablePointer<passwd>?) -> ServiceAccount? {
        guard let entry = entry?.pointee, entry.pw_uid != 0 else { return nil }
        return ServiceAccount(
            name: String(cString: entry.pw_name),
            user: entry.pw_uid,
            group: entry.pw_gid,
            isOther: true
        )
    }

    private static func named(_ user: uid_t) -> String? {
        getpwuid(user).map { String(cString: $0.pointee.pw_name) }
    }

    /// Returns the program and arguments that run `program` as this account.
    ///
    /// It uses the program setpriv instead of Subprocess's `userID`: that calls setgroups() between fork and exec, and
    /// glibc's setgroups() waits for threads that a fork does not copy, sometimes for ever.
    func command(_ program: String, _ arguments: [String]) -> (program: String, arguments: [String]) {
        // On other systems `choose` refuses root.
        #if os(Linux)
        guard isOther else { return (program, arguments) }
        // The program runs without root's groups.
        return ("/usr/bin/setpriv", ["--reuid=\(user)", "--regid=\(group)", "--clear-groups", program] + arguments)
        #else
        return (program, arguments)
        #endif
    }
}
