import ArgumentParser
import Foundation
import OperatorConsole
import ServiceCore
import UnixSignals

struct TopCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "top",
        abstract: "Watch a running service: rate, latency, tiers, busiest users.",
        discussion: """
            Draws once a second; q or Ctrl-C quits. If standard output is not a terminal, it prints a line a second \
            instead, and with --json an object. The busiest users are read at most every 5 seconds, less often if the \
            answer takes long.
            """
    )

    @Option(help: "Busiest users to show (0 to 1000).") var users = 10
    @Flag(help: "Print one sample, then exit.") var once = false
    @OptionGroup var options: TargetOptions

    func validate() throws {
        guard (0...1_000).contains(users) else { throw ValidationError("--users must be 0 to 1000") }
    }

    func run() async throws {
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
