import ArgumentParser
import HeadroomServer

@main
struct Headroom: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "headroom",
        abstract: "May this user send another message, and what should we tell them?",
        version: HeadroomVersion.current,
        subcommands: [
            Serve.self, Migrate.self, Roles.self, Prune.self, Ping.self, Status.self, User.self, Report.self, Top.self,
            Audit.self, Token.self, Bench.self,
        ],
        defaultSubcommand: Serve.self
    )
}
