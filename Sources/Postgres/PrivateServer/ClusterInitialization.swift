import Foundation

/// Creates the cluster.
struct ClusterInitialization {
    let directory: DataDirectory
    let programs: PostgresPrograms
    /// Whether to sync the files to disk; false in tests.
    let isDurable: Bool

    /// Creates the cluster. The caller must hold the start lock.
    func run() async throws {
        let target = directory.unfinishedCluster
        try await FileSystem.removeDirectory(target)  // left by an interrupted start
        try FileSystem.makePrivateDirectory(target, for: directory.account)
        let outcome = try await ProgramRunner(account: directory.account).run(programs.initdb, arguments(target))
        guard outcome.succeeded else {
            throw PrivateServerError(
                .initializationFailed,
                "initdb failed in \(target); correct the error and start again: \(outcome.output)"
            )
        }
        try ClusterInitialization.include(in: AccountDirectory(target), for: directory.account)
        try FileSystem.move(target, to: directory.cluster)
    }

    private func arguments(_ target: String) -> [String] {
        var arguments = [
            "--pgdata=\(target)", "--username=headroom", "--data-checksums", "--encoding=UTF8",
            // initdb trusts users that can enter the socket's directory: the cluster's owner, and root. See
            // headroom.conf.
            "--auth-local=trust", "--auth-host=reject",
            // The byte order does not change with a new C library, so indexes stay valid.
            "--locale=C",
        ]
        // Upper and lower case beyond ASCII work if the system has this locale.
        if let locale = newlocale(1 << LC_CTYPE, "C.UTF-8", nil) {
            freelocale(locale)
            arguments.append("--lc-ctype=C.UTF-8")
        }
        if !isDurable { arguments.append("--no-sync") }
        return arguments
    }

    /// Appends the include line to postgresql.conf, so that headroom.conf overrides initdb's settings.
    static func include(
        in cluster: borrowing AccountDirectory,
        for account: ServiceAccount
    ) throws(PrivateServerError) {
        let name = "postgresql.conf"
        let text = try cluster.text(of: name) ?? ""
        let isIncluded = text.split(separator: "\n").contains { $0 == ClusterSettings.includeLine }
        guard !isIncluded else { return }
        try cluster.replace(name, with: text + "\n" + ClusterSettings.includeLine + "\n", for: account)
    }
}
