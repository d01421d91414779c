import Subprocess

/// Runs PostgreSQL's programs as the account that owns the cluster.
struct ProgramRunner {
    struct Outcome {
        let succeeded: Bool
        /// Standard output and standard error together.
        let output: String
    }

    /// More than any of the programs says. Beyond it the call fails, rather than filling the memory.
    static let outputLimit = 256 * 1_024

    let account: ServiceAccount

    func run(_ program: String, _ arguments: [String]) async throws -> Outcome {
        let command = account.command(program, arguments)
        var options = PlatformOptions()
        // A Ctrl-C in the terminal goes to its whole process group: PostgreSQL must not shut down while we still drain.
        // pg_ctl puts the server into yet another session.
        options.createSession = true
        let result = try await Subprocess.run(
            .path(.init(command.program)),
            arguments: Arguments(command.arguments),
            environment: ProgramRunner.environment,
            // The account may not be allowed to enter the directory we were started in.
            workingDirectory: "/",
            platformOptions: options,
            output: .string(limit: ProgramRunner.outputLimit),
            error: .combinedWithOutput
        )
        return Outcome(succeeded: result.terminationStatus.isSuccess, output: result.standardOutput)
    }

    /// Ours, so that PATH stays; but an operator's PGDATA, PGPORT or PGOPTIONS mean another server, and the programs'
    /// messages are to be in English whatever the language of the terminal.
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
