import ArgumentParser
import LineClient
import OperatorConsole
import ServiceCore

struct UserCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "user",
        abstract: "Show a user's usage, and earlier periods.",
        discussion: "Connects to a running service. A user without a plan is shown as the next message would find them."
    )

    @Argument(help: UserArgument.help) var user: UserArgument
    @Option(help: "Periods to show (1 to 1200).") var months = 6
    @OptionGroup var options: TargetOptions

    func validate() throws {
        guard (1...1_200).contains(months) else { throw ValidationError("--months must be 1 to 1200") }
    }

    func run() async throws {
        try await options.withClient { client in
            let report = try await UserCommand.report(of: user, months: months, client)
            try StandardOutput.print(options.json ? try report.jsonLine() : report.text(width: Terminal.size?.width))
        }
    }

    static func report(of user: UserArgument, months: Int, _ client: LineClient) async throws -> UserReport {
        let usage = try Record(await client.request(words: ["USAGE", user.text], timeout: .seconds(10)), status: "OK")
        let history = try await client.request(words: ["HISTORY", user.text, "\(months)"], timeout: .seconds(10))
        let allowances = try await client.request(words: ["ALLOWANCES", user.text], timeout: .seconds(10))
        return UserReport(
            usage: usage,
            history: try [Record](history, status: "PERIOD"),
            allowances: try [Record](allowances, status: "ALLOWANCE")
        )
    }
}
