import ArgumentParser
import Foundation
import HeadroomServer
import OperatorConsole
import UnixSignals

struct Top: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Watch a running service: rate, latency, tiers, busiest users.",
        discussion: """
            Draws once a second; q or Ctrl-C ends it. Where standard output is no terminal it prints a line a second \
            instead, and with --json an object. The busiest users are asked for ever less often the longer the answer \
            takes.
            """
    )

    @Option(help: "Busiest users to show (0 to 1000).") var users = 10
    @Flag(help: "One picture, then end.") var once = false
    @OptionGroup var options: TargetOptions

    func validate() throws {
        guard (0...1_000).contains(users) else { throw ValidationError("--users must be 0 to 1000") }
    }

    func run() async throws {
        let address = try options.address()
        let watch = ServiceWatch(address: address, access: try options.access(), users: users, target: options.target)
        if once {
            try await options.withClient { client in
                try show(try await watch.picture(client, awaitingUsers: true))
            }
            return
        }
        // The first picture tells at once whether there is a service at all.
        try await options.withClient { client in _ = try await watch.picture(client, awaitingUsers: false) }
        let screen = options.json ? nil : TerminalScreen.open()
        defer { screen?.close() }
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await draw(watch, on: screen) }
            group.addTask { await Top.signalled() }
            if let screen { group.addTask { await screen.endKey() } }
            let end = await group.nextResult()
            group.cancelAll()
            await watch.close()
            try end?.get()
        }
    }

    private static func signalled() async {
        for await _ in await UnixSignalsSequence(trapping: .sigint, .sigterm) { return }
    }

    private func show(_ picture: TopSample) throws {
        if options.json {
            try StandardOutput.print(try picture.jsonLine())
        } else {
            let width = Terminal.size?.width ?? .max
            try StandardOutput.print(picture.lines(width: width, height: .max).joined(separator: "\n"))
        }
    }

    /// Once a second until cancelled.
    ///
    /// - Throws: when nothing more can be shown.
    private func draw(_ watch: ServiceWatch, on screen: TerminalScreen?) async throws {
        var lines = 0
        var last: TopSample?
        while !Task.isCancelled {
            let began = ContinuousClock.now
            do {
                let picture = try await watch.picture()
                last = picture
                if let screen {
                    try draw(picture, on: screen)
                } else if options.json {
                    try show(picture)
                } else {
                    // Again now and then, for who looks at the end of a long file.
                    if lines % 20 == 0 { try StandardOutput.print(TopSample.lineHeader) }
                    lines += 1
                    try StandardOutput.print(picture.line(at: Top.time))
                }
            } catch let failure as StandardOutput.Failure {
                throw failure
            } catch {
                guard !Task.isCancelled else { return }
                try tell("the service at \(options.target) cannot be reached: \(error)", last, on: screen)
            }
            // Cancelled: the loop ends.
            try? await Task.sleep(until: began + .seconds(1))
        }
    }

    private func draw(
        _ picture: TopSample,
        on screen: TerminalScreen,
        problem: String? = nil
    ) throws(StandardOutput.Failure) {
        let (width, height) = Terminal.size ?? (80, 24)
        try screen.draw(picture.screen(width: width, height: height, problem: problem, footer: screen.footer))
    }

    private func tell(_ problem: String, _ last: TopSample?, on screen: TerminalScreen?) throws(StandardOutput.Failure)
    {
        let problem = LogfmtHandler.harmless(problem)
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
