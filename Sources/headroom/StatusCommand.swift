import ArgumentParser
import OperatorConsole
import ServiceCore

struct StatusCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Show the state of a running service: database, lanes, lag, version, answers.",
        discussion: "Exit status 0; 69 when the service, or its database, cannot be reached."
    )

    @OptionGroup var options: TargetOptions

    func run() async throws {
        try await options.withClient { client in
            let info = try ServiceInfo(lines: await client.request("INFO", timeout: .seconds(5)))
            try StandardOutput.print(
                options.json
                    ? try info.jsonLine()
                    : StatusReport(info, target: options.target).text(width: Terminal.size?.width)
            )
            guard info.isDatabaseReached else {
                throw CommandFailure.databaseUnreachable("the service at \(options.target) cannot reach its database")
                    .exitCodeAfterPrinting()
            }
        }
    }
}
