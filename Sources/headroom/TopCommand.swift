import ArgumentParser
import Engine
import Foundation
import OperatorConsole
import Postgres
import ServiceCore
import UnixSignals
import Usage

struct TopCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "top",
        abstract: "Watch a running service: rate, latency, tiers, busiest users.",
        discussion: """
            Draws once a second; q or Ctrl-C quits. If standard output is not a terminal, it prints a line a second \
            instead, and with --json an object. The busiest users are read at most every 5 seconds, less often if the \
            answer takes long. With --by it connects to the database instead, and lists the models or the members of all \
            accounts with the most messages in a billing period.
            """
    )

    @Option(help: "Busiest users, models or members to show (0 to 1000).") var users = 10
    @Flag(help: "Print one sample, then exit.") var once = false
    @Option(help: "model or member: list these, once.") var by: PlanLimit.Kind?
    @Option(help: "With --by: \(BillingPeriod.forms) (default: all open periods).") var period: String?
    @OptionGroup var options: TargetOptions
    @OptionGroup(title: "Database, with --by") var database: DatabaseOptions

    func validate() throws {
        guard (0...1_000).contains(users) else { throw ValidationError("--users must be 0 to 1000") }
        guard by != nil || period == nil else { throw ValidationError("--period needs --by") }
        if let period, BillingPeriod(period) == nil {
            throw ValidationError("the period must be \(BillingPeriod.forms)")
        }
    }

    func run() async throws {
        if let by { return try await list(by) }
        let address = try options.address()
        let watch = ServiceWatch(address: address, access: try options.access(), users: users, target: options.target)
        if once {
            try await options.withClient { client in
                try show(try await watch.sample(client, awaitingUsers: true))
            }
            return
        }
        // The command fails at once if the service cannot be reached.
        try await options.withClient { client in _ = try await watch.sample(client, awaitingUsers: false) }
        let screen = options.json ? nil : TerminalScreen.open()
        defer { screen?.close() }
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await draw(watch, on: screen) }
            group.addTask { await TopCommand.endSignal() }
            if let screen { group.addTask { await screen.quitKey() } }
            let end = await group.nextResult()
            group.cancelAll()
            await watch.close()
            try end?.get()
        }
    }

    private func list(_ kind: PlanLimit.Kind) async throws {
        let (period, users) = (period.flatMap { BillingPeriod($0) }, users)
        let access = try DatabaseAccess(database)
        let parts = try await access.run(onThreadNamed: "headroom.top", failingWith: TopCommand.failure) { database in
            try TopPartsReader(database: database).parts(kind, in: period, limit: users).map { part in
                TopPartsTable.Part(
                    name: part.name,
                    label: part.label,
                    period: part.period,
                    used: part.used,
                    held: part.held,
                    accounts: part.accounts,
                    blocked: part.blocked,
                    account: part.account
                )
            }
        }
        guard !parts.isEmpty else {
            let asked = period.map { "period \($0.label)" } ?? "the open periods"
            throw CommandFailure.notFound("no messages of a \(kind.rawValue) are counted in \(asked)")
                .exitCodeAfterPrinting()
        }
        let table = TopPartsTable(parts)
        try StandardOutput.print(list: parts, asJSON: options.json, else: table.text(width: Terminal.size?.width))
    }

    private static func failure(_ error: PostgresError) -> CommandFailure {
        switch error.sqlState {
        case .insufficientPrivilege:
            .permissionDenied(
                "this role may not read models and members; connect as one that is granted headroom_operator"
            )
        default: CommandFailure(error)
        }
    }

    private static func endSignal() async {
        for await _ in await UnixSignalsSequence(trapping: .sigint, .sigterm) { return }
    }

    private func show(_ sample: TopSample) throws {
        if options.json {
            try StandardOutput.print(try sample.jsonLine())
        } else {
            let width = Terminal.size?.width ?? .max
            try StandardOutput.print(sample.lines(width: width, height: .max).joined(separator: "\n"))
        }
    }

    /// Draws once a second until cancelled.
    ///
    /// - Throws: if the output cannot be written.
    private func draw(_ watch: ServiceWatch, on screen: TerminalScreen?) async throws {
        var lines = 0
        var last: TopSample?
        while !Task.isCancelled {
            let began = ContinuousClock.now
            do {
                let sample = try await watch.sample()
                last = sample
                if let screen {
                    try draw(sample, on: screen)
                } else if options.json {
                    try show(sample)
                } else {
                    // The header is repeated, for readers of the end of a long file.
                    if lines % 20 == 0 { try StandardOutput.print(TopSample.lineHeader) }
                    lines += 1
                    try StandardOutput.print(sample.line(at: TopCommand.time))
                }
            } catch let failure as StandardOutput.Failure {
                throw failure
            } catch {
                guard !Task.isCancelled else { return }
                try report("the service at \(options.target) cannot be reached: \(error)", last, on: screen)
            }
            // Cancelled: the loop ends.
            try? await Task.sleep(until: began + .seconds(1))
        }
    }

    private func draw(
        _ sample: TopSample,
        on screen: TerminalScreen,
        problem: String? = nil
    ) throws(StandardOutput.Failure) {
        let (width, height) = Terminal.size ?? (80, 24)
        try screen.draw(sample.screen(width: width, height: height, problem: problem, footer: screen.footer))
    }

    private func report(
        _ problem: String,
        _ last: TopSample?,
        on screen: TerminalScreen?
    ) throws(StandardOutput.Failure) {
        let problem = LogfmtHandler.escaped(problem)
        guard let screen else { return LogfmtHandler.standardError("\(problem)\n") }
        if let last {
            try draw(last, on: screen, problem: problem)
        } else {
            try screen.draw([ScreenLine(text: problem, emphasis: .alarm)])
        }
    }

    private static var time: String {
        Date().formatted(.iso8601.time(includingFractionalSeconds: false).timeSeparator(.colon))
    }
}

extension PlanLimit.Kind: ExpressibleByArgument {}
