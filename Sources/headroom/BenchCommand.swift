import ArgumentParser
import Foundation
import LoadGenerator
import ServiceCore
import UnixSignals

struct BenchCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "bench",
        abstract: "Put load on a running service and measure its answers.",
        discussion: """
            It counts real messages of real users: use it with a scratch database only. Users without a plan soon use up \
            their allowance and are BLOCKED; docs/benchmarking.md shows how to give them a larger plan, how to read the \
            figures, and what each name in the JSON means.

            Exit status 0; 1 if the target cannot be reached, connections broke, or requests were dropped or not \
            answered; 64 for bad options. Ctrl-C ends early and shows the figures so far.
            """
    )

    @OptionGroup var options: BenchOptions

    func validate() throws {
        _ = try options.plan()
    }

    func run() async throws {
        var plan = try options.plan()
        do {
            let access = try options.accessOptions.access()
            plan.token = access.token?.secret
            if let tls = access.tls {
                plan.encryption = { [host = plan.host] in try tls.add(to: $0, host: host) }
            }
        } catch {
            BenchTerminal.error("\(error)")
            throw ExitCode(64)
        }
        let terminal = BenchTerminal(isQuiet: options.quiet)
        let descriptors = ProcessSetup.raiseDescriptorLimit(connections: plan.connections + plan.idleConnections)
        guard descriptors.allowed >= descriptors.needed else {
            BenchTerminal.error(
                "these connections need \(descriptors.needed) descriptors, and the system allows "
                    + "\(descriptors.allowed); raise the hard limit (ulimit -Hn)"
            )
            throw ExitCode(1)
        }
        let run = LoadRun(plan)
        let signals = await UnixSignalsSequence(trapping: .sigint, .sigterm)
        let stopping = Task {
            for await _ in signals { run.stop() }
        }
        defer { stopping.cancel() }
        terminal.line("seed \(plan.seed) (--seed \(plan.seed) repeats the same users)")
        let report: LoadReport
        do {
            report = try await run.run(progress: terminal.show)
        } catch let error as LoadError {
            BenchTerminal.error("\(plan.host):\(plan.port): \(error)")
            throw ExitCode(1)
        }
        terminal.end()
        try StandardOutput.print(options.json ? try report.json() : report.table)
        for problem in report.problems { BenchTerminal.error(problem) }
        if !report.problems.isEmpty { throw ExitCode(1) }
    }
}

/// Progress on standard error.
struct BenchTerminal {
    private let isQuiet: Bool
    private let isTerminal = isatty(2) == 1 && Terminal.movesCursor

    init(isQuiet: Bool) {
        self.isQuiet = isQuiet
    }

    static func error(_ text: String) {
        LogfmtHandler.standardError("bench: \(text)\n")
    }

    func line(_ text: String) {
        if !isQuiet { LogfmtHandler.standardError("bench: \(text)\n") }
    }

    func show(_ progress: LoadProgress) {
        guard !isQuiet else { return }
        switch progress {
        case .connected: line(progress.description)
        // A terminal shows each second in the place of the last one, a file has a line for each.
        case .second: LogfmtHandler.standardError(isTerminal ? "\r\u{1B}[K\(progress)" : "\(progress)\n")
        }
    }

    func end() {
        if !isQuiet, isTerminal { LogfmtHandler.standardError("\n") }
    }
}
