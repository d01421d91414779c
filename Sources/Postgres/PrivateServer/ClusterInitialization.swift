import Foundation

/// Makes the cluster, once.
struct ClusterInitialization {
    let directory: DataDirectory
    let programs: PostgresPrograms
    /// Whether the files have to be on disk before the cluster counts as made. Not for tests.
    let isDurable: Bool

    /// Only with the start lock held.
    func run() async throws {
        let target = directory.unfinishedCluster
        try Files.remove(target)  // of a start that was interrupted
        try Files.makePrivateDirectory(target, for: directory.account)
        let outcome = try await ProgramRunner(account: directory.account).run(programs.initdb, arguments(target))
        guard outcome.succeeded else {
            throw PrivateServerError(
                .initializationFailed,
                "initdb failed in \(target); mend what it says and start again: \(outcome.output)"
            )
        }
        try ClusterInitialization.include(in: target, for: directory.account)
        try Files.move(target, to: directory.cluster)
    }

    private func arguments(_ target: String) -> [String] {
        var arguments = [
            "--pgdata=\(target)", "--username=headroom", "--data-checksums", "--encoding=UTF8",
            // Trust is for whoever can enter the socket's directory: the cluster's owner, and root. See headroom.conf.
            "--auth-local=trust", "--auth-host=reject",
            // Plain byte order, which needs no library and never changes with one: indexes stay valid.
            "--locale=C",
        ]
        // Upper and lower case beyond ASCII, where the system has it.
        if let locale = newlocale(1 << LC_CTYPE, "C.UTF-8", nil) {
            freelocale(locale)
            arguments.append("--lc-ctype=C.UTF-8")
        }
        if !isDurable { arguments.append("--no-sync") }
        return arguments
    }

    /// At the end of the file, so that our settings come after initdb's.
    static func include(in cluster: String, for account: ServiceAccount) throws(PrivateServerError) {
        let path = cluster + "/postgresql.conf"
        guard let text = try? String(contentsOfFile: path, encoding: .utf8) else { throw Files.failed("read", path) }
        let isIncluded = text.split(separator: "\n").contains { $0 == ClusterSettings.includeLine }
        guard !isIncluded else { return }
        try Files.replace(path, with: text + "\n" + ClusterSettings.includeLine + "\n", for: account)
    }
}
