import Foundation

/// The account that PostgreSQL runs as. PostgreSQL refuses to run as root, so root's service lends it another one.
struct ServiceAccount: Sendable, Hashable {
    let name: String
    let user: uid_t
    let group: gid_t
    /// Whether programs have to be started as another user, and files given to them.
    let isLent: Bool

    static let environmentName = "HEADROOM_POSTGRES_USER"

    static func current() -> ServiceAccount {
        ServiceAccount(name: named(getuid()) ?? "\(getuid())", user: getuid(), group: getgid(), isLent: false)
    }

    /// - Parameter clusterOwner: who owns the cluster, if there is one: it can be run as nobody else.
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
        if let clusterOwner, clusterOwner != 0, let account = lent(getpwuid(clusterOwner)) { return account }
        if let wanted = ProcessInfo.processInfo.environment[environmentName] {
            guard let account = lent(getpwnam(wanted)) else {
                throw PrivateServerError(
                    .directoryUnusable,
                    "\(environmentName)=\(wanted) is no unprivileged user of this system; PostgreSQL refuses to run as "
                        + "root, name an existing user"
                )
            }
            return account
        }
        guard let account = lent(getpwnam("postgres")) ?? lent(getpwnam("nobody")) else {
            throw PrivateServerError(
                .directoryUnusable,
                "PostgreSQL refuses to run as root, and this system has neither a user postgres nor a user nobody; "
                    + "create one and name it in \(environmentName)"
            )
        }
        return account
    }

    private static func lent(_ entry: UnsafeMutablePointer<passwd>?) -> ServiceAccount? {
        guard let entry = entry?.pointee, entry.pw_uid != 0 else { return nil }
        return ServiceAccount(
            name: String(cString: entry.pw_name),
            user: entry.pw_uid,
            group: entry.pw_gid,
            isLent: true
        )
    }

    private static func named(_ user: uid_t) -> String? {
        getpwuid(user).map { String(cString: $0.pointee.pw_name) }
    }

    /// The program and arguments that run `program` as this account.
    ///
    /// By setpriv, a program of its own, and not by Subprocess's `userID`: that calls setgroups() between fork and
    /// exec, and glibc's setgroups() waits for threads that a fork does not copy. Now and then it waited for ever.
    func command(_ program: String, _ arguments: [String]) -> (program: String, arguments: [String]) {
        guard isLent else { return (program, arguments) }
        // Root's groups stay behind.
        return ("/usr/bin/setpriv", ["--reuid=\(user)", "--regid=\(group)", "--clear-groups", program] + arguments)
    }
}
