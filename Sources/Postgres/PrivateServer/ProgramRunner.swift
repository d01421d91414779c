import Subprocess

/// Runs PostgreSQL's programs as the account that owns the cluster.
struct ProgramRunner {
    struct Outcome {
        let succeeded: Bool
        /// Standard output and standard error together.
        let output: String
    }

    /// The most bytes of output, which is more than any of the programs prints. A longer output fails the call instead
    /// of filling the memory.
    static let outputLimit = 256 * 1_024

    let account: ServiceAccount

    func run(_ program: String, _ arguments: [String]) async throws -> Outcome {
        let command = account.command(program, arguments)
        var options = PlatformOptions()
        // Ctrl-C signals the whole process group of the terminal: PostgreSQL must not shut down while the service still
        // drains. pg_ctl starts the server in yet another session.
        options.createSession = true
        let result = try await Subprocess.run(
            .path(.init(command.program)),
            arguments: Arguments(command.arguments),
            environment: ProgramRunner.environment,
            // The account may have no access to the service's working directory.
            workingDirectory: "/",
            platformOptions: options,
            output: .string(limit: ProgramRunner.outputLimit),
            error: .combinedWithOutput
        )
        return Outcome(succeeded: result.terminationStatus.isSuccess, output: result.standardOutput)
    }

    /// The service's own environment, for PATH, but without PGDATA, PGPORT or PGOPTIONS, which may be for another
    /// server, and with messages in English.
    private static var environment: Environment {
        let operators = [
            "PGDATA", "PGHOST", "PGHOSTADDR", "PGPORT", "PGUSER", "PGDATABASE", "PGOPTIONS", "PGSERVICE",
            "PGAPPNAME", "PGCTLTIMEOUT", "PGCLIENTENCODING", "PGTZ", "PGDATESTYLE", "PGSSLMODE", "LANG", "LANGUAGE",
        ]
        var changes: [Environment.Key: String?] = ["LC_ALL": "C"]
        for name in operators {
            changes[Environment.Key(stringLiteral: name)] = String?.none
        }
        return Environment.inherit.updating(changes)
    }
}
