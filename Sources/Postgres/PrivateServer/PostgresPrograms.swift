import Foundation

/// A directory with the programs of a PostgreSQL server: initdb, pg_ctl and postgres.
struct PostgresPrograms: Sendable, Hashable {
    let directory: String
    let majorVersion: Int

    /// The environment variable that names the directory.
    static let environmentVariable = "HEADROOM_POSTGRES_BIN"
    static let oldestMajorVersion = 14

    var initdb: String { directory + "/initdb" }
    var pgCtl: String { directory + "/pg_ctl" }
    var postgres: String { directory + "/postgres" }

    /// Returns the first directory with a suitable version.
    ///
    /// - Parameters:
    ///   - clusterVersion: the major version of the existing cluster, which the programs must have. It is nil if there
    ///     is no cluster yet: then any version from `oldestMajorVersion` is suitable.
    ///   - cluster: the cluster's directory, for the error's message.
    static func find(clusterVersion: Int?, cluster: String) async throws -> PostgresPrograms {
        let candidates = await candidates()
        var found: [PostgresPrograms] = []
        for directory in candidates where isComplete(directory) {
            guard let version = await majorVersion(directory) else { continue }
            let programs = PostgresPrograms(directory: directory, majorVersion: version)
            if let clusterVersion {
                if version == clusterVersion { return programs }
            } else if version >= oldestMajorVersion {
                return programs
            }
            found.append(programs)
        }
        guard let clusterVersion, !found.isEmpty else { throw missing(candidates, found, clusterVersion) }
        let versions = Set(found.map(\.majorVersion)).sorted().map(String.init).joined(separator: ", ")
        throw PrivateServerError(
            .versionMismatch,
            """
            \(cluster) was created by PostgreSQL \(clusterVersion), but only version \(versions) was found; install \
            PostgreSQL \(clusterVersion) (Debian: apt install postgresql-\(clusterVersion)), or dump it with that \
            version (pg_dump) and restore it in a new data-dir
            """
        )
    }

    /// Returns the directories to search, the preferred one first. If the environment variable is set, its directory is
    /// the only one.
    private static func candidates() async -> [String] {
        let environment = ProcessInfo.processInfo.environment
        if let directory = environment[environmentVariable], !directory.isEmpty { return [directory] }
        var directories: [String] = []
        let path = (environment["PATH"] ?? "").split(separator: ":").map(String.init).filter { $0.hasPrefix("/") }
        if let pgConfig = path.map({ $0 + "/pg_config" }).first(where: FileSystem.isExecutable),
            let outcome = try? await ProgramRunner(account: .current()).run(pgConfig, ["--bindir"]), outcome.succeeded
        {
            directories.append(outcome.output.trimmingCharacters(in: .whitespacesAndNewlines))
        }
        let debian = "/usr/lib/postgresql"
        let versions = ((try? FileManager.default.contentsOfDirectory(atPath: debian)) ?? []).compactMap { Int($0) }
        directories += versions.sorted(by: >).map { "\(debian)/\($0)/bin" }
        directories += homebrewDirectories
        directories += path
        return directories
    }

    /// The directories of Homebrew's servers. Homebrew links a server that has a version in its name nowhere into PATH.
    private static var homebrewDirectories: [String] {
        #if os(macOS)
        ["/opt/homebrew/opt", "/usr/local/opt"].flatMap { prefix in
            let names = (try? FileManager.default.contentsOfDirectory(atPath: prefix)) ?? []
            let versions = names.filter { $0.hasPrefix("postgresql@") }.compactMap { Int($0.dropFirst(11)) }
            return versions.sorted(by: >).map { "\(prefix)/postgresql@\($0)/bin" }
        }
        #else
        []
        #endif
    }

    /// Whether the directory has all programs. One with pg_config may lack the server's, because pg_config comes with
    /// the client's development package.
    private static func isComplete(_ directory: String) -> Bool {
        ["initdb", "pg_ctl", "postgres"].allSatisfy { FileSystem.isExecutable(directory + "/" + $0) }
    }

    /// Parses the output of `postgres --version`, for example "postgres (PostgreSQL) 15.20 (Debian 15.20-0+deb12u1)".
    private static func majorVersion(_ directory: String) async -> Int? {
        guard let outcome = try? await ProgramRunner(account: .current()).run(directory + "/postgres", ["--version"]),
            outcome.succeeded
        else { return nil }
        let words = outcome.output.split(whereSeparator: \.isWhitespace)
        guard words.count >= 3 else { return nil }
        return Int(words[2].prefix { $0.isNumber })
    }

    private static func missing(
        _ candidates: [String],
        _ found: [PostgresPrograms],
        _ clusterVersion: Int?
    ) -> PrivateServerError {
        let tooOld = found.map { "version \($0.majorVersion) in \($0.directory) is too old" }
        let what = ["no PostgreSQL server (version \(oldestMajorVersion) or newer) was found"] + tooOld
        let package = clusterVersion.map { "postgresql-\($0)" } ?? "postgresql"
        return PrivateServerError(
            .programsMissing,
            """
            \(what.joined(separator: "; ")); install it (Debian, Ubuntu: apt install \(package); Fedora: dnf install \
            postgresql-server; Alpine: apk add postgresql; macOS: brew install \
            postgresql@16), or name the directory that holds initdb, pg_ctl and \
            postgres in \(environmentVariable), or give the service a database-url. Looked in: \
            \(candidates.joined(separator: ", "))
            """
        )
    }
}
