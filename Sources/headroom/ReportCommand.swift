import ArgumentParser
import OperatorConsole
import ServiceCore
import Usage

struct ReportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "report",
        abstract: "Sum up a billing period: users, messages, how many users are in each tier.",
        discussion: """
            A running service scans the whole table: with millions of rows this takes a while. Exit status 1 when there \
            is no usage in that period.
            """
    )

    @Argument(help: "\(BillingPeriod.forms) (default: every period that is open now).")
    var period: String?
    @Option(help: "Seconds to wait for the answer (1 to 3600).") var timeout = 70
    @OptionGroup var options: TargetOptions

    func validate() throws {
        guard (1...3_600).contains(timeout) else { throw ValidationError("--timeout must be 1 to 3600") }
        if let period, BillingPeriod(period) == nil {
            throw ValidationError("the period must be \(BillingPeriod.forms)")
        }
    }

    func run() async throws {
        try await options.withClient { client in
            let request = (["REPORT"] + (period.map { [$0] } ?? [])).joined(separator: " ")
            let lines = try await client.request(request, timeout: .seconds(timeout))
            let report = PeriodSummary(try Record(lines, status: "REPORT"))
            try StandardOutput.print(options.json ? try report.record.jsonLine() : report.text)
            guard !report.isEmpty else {
                let isOpen = report.period == BillingPeriod.open.label
                let period = isOpen ? "a period that is open now" : "period \(report.period)"
                throw CommandFailure.notFound("there is no usage in \(period)").exitCodeAfterPrinting()
            }
        }
    }
}
