import ArgumentParser
import CBuild
import Engine
import ServiceCore

@main
struct Headroom: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "headroom",
        abstract: "May this user send another message, and what should we tell them?",
        version: version,
        subcommands: [
            ServeCommand.self, AskCommand.self, MigrateCommand.self, DistributeCommand.self, RebalanceCommand.self,
            RolesCommand.self, ImportCommand.self, PruneCommand.self, PingCommand.self, StatusCommand.self,
            UserCommand.self, ReportCommand.self, TopCommand.self, AuditCommand.self, PlanCommand.self,
            TokenCommand.self, ProductCommand.self, CustomerCommand.self, EventsCommand.self, NotificationsCommand.self,
            BenchCommand.self,
        ]
    )

    /// A build for development has no commit.
    private static var version: String {
        let commit = String(cString: headroom_commit())
        return HeadroomVersion.current + (commit.isEmpty ? "" : " (\(commit))")
    }

    /// The library's `main`, except that it escapes errors that quote foreign text, reports unknown commands, and ends
    /// quietly when the reader of its output has ended.
    static func main() async {
        do {
            try UnknownCommand.check(Array(CommandLine.arguments.dropFirst()))
            var command = try parseAsRoot()
            let pipeSignalWasIgnored = StandardOutput.ignorePipeSignal()
            do {
                if var asynchronous = command as? any AsyncParsableCommand {
                    try await asynchronous.run()
                } else {
                    try command.run()
                }
            } catch let invalid as InvalidSetting {
                throw CommandFailure.invalidArguments("\(invalid)").exitCodeAfterPrinting()
            } catch let failure as StandardOutput.Failure where failure.hasNoReader {
                StandardOutput.endWithoutReader(pipeSignalWasIgnored: pipeSignalWasIgnored)
            }
        } catch {
            let code = exitCode(for: error)
            guard !code.isSuccess else { exit(withError: error) }
            let text = fullMessage(for: error)
            if !text.isEmpty { LogfmtHandler.standardError(LogfmtHandler.escaped(text) + "\n") }
            exit(withError: code)
        }
    }
}
