import ArgumentParser
import HeadroomServer
import OperatorConsole

struct User: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show a user's usage, and the periods before.",
        discussion: "Asks a running service. Shows a user without a plan as the next message would find the user."
    )

    @Argument(help: "The user's UUID.") var user: UserArgument
    @Option(help: "Periods to show (1 to 1200).") var months = 6
    @OptionGroup var options: TargetOptions

    func validate() throws {
        guard (1...1_200).contains(months) else { throw ValidationError("--months must be 1 to 1200") }
    }

    func run() async throws {
        try await options.withClient { client in
            let usage = try Record(await client.ask("USAGE \(user.id)", timeout: .seconds(10)), status: "OK")
            let history = try await client.ask("HISTORY \(user.id) \(months)", timeout: .seconds(10))
            let report = UserReport(usage: usage, history: try [Record](history, status: "PERIOD"))
            try StandardOutput.print(options.json ? try report.jsonLine() : report.text)
        }
    }
}
