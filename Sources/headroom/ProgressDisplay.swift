import OperatorConsole
import ServiceCore
import Synchronization

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// Shows on standard error how far a command has come: in one line of a terminal, which it writes anew, or elsewhere in
/// a line every ten seconds. All commands whose work may take longer use it.
struct ProgressDisplay {
    private let total: Int?
    /// The text is known with the first call of `show`.
    private var text: ProgressText?
    private let isTerminal = isatty(STDERR_FILENO) == 1 && Terminal.movesCursor
    private let begun = ContinuousClock.now
    private var nextLine: ContinuousClock.Instant
    private var hasLine = false

    /// - Parameters:
    ///   - total: the size of the whole work in its own units; nil if it is not known.
    ///   - firstAfter: how long a terminal shows nothing, because the work may be done by then. Elsewhere nothing is
    ///     written in the first ten seconds then.
    init(total: Int?, firstAfter delay: Duration = .zero) {
        self.total = total
        nextLine = begun + (delay == .zero || isTerminal ? delay : ProgressDisplay.pause(isTerminal: false))
    }

    /// What is done with the first call was done before.
    ///
    /// - Parameter detail: what to say of it.
    mutating func show(_ done: Int, _ detail: @autoclosure () -> String) {
        show(done) { $0.line(done: done, detail(), elapsed: $1) }
    }

    /// Shows the progress as the other method does, with the numbers and the rate.
    ///
    /// - Parameter units: of what the work consists of, such as `rows`.
    mutating func show(_ done: Int, of units: String) {
        show(done) { $0.line(done: done, of: units, elapsed: $1) }
    }

    private mutating func show(_ done: Int, _ line: (ProgressText, Duration) -> String) {
        let text = self.text ?? ProgressText(total: total, doneBefore: done)
        self.text = text
        let now = ContinuousClock.now
        guard now >= nextLine else { return }
        nextLine = now + ProgressDisplay.pause(isTerminal: isTerminal)
        let line = LogfmtHandler.escaped(line(text, now - begun))
        // The cursor goes to the beginning of the line, which is then erased up to its end.
        LogfmtHandler.standardError(isTerminal ? "\r\u{1B}[K\(line)" : line + "\n")
        hasLine = isTerminal
    }

    /// Removes the line, so that the result takes its place.
    mutating func end() {
        if hasLine { LogfmtHandler.standardError("\r\u{1B}[K") }
        hasLine = false
    }

    private static func pause(isTerminal: Bool) -> Duration { isTerminal ? .milliseconds(200) : .seconds(10) }
}

/// The progress of work whose steps may take long, so that it is shown also during a step: by a task of its own, until
/// `end`.
final class SteppedProgress: Sendable {
    private struct Step {
        /// The step's number, from 1.
        var number: Int
        var name: String
        var begun: ContinuousClock.Instant
    }

    private let step = Mutex<Step?>(nil)

    func begin(_ name: String) {
        step.withLock { $0 = Step(number: ($0?.number ?? 0) + 1, name: name, begun: .now) }
    }

    /// Shows the present step while `work` runs: `step 7: applying tables/0002_message_usage.sql, 0:12`. The time is
    /// that of the step.
    func show<Value: Sendable>(during work: () async throws -> Value) async throws -> Value {
        let display = Task { [self] in
            var display = ProgressDisplay(total: nil, firstAfter: .seconds(1))
            while !Task.isCancelled {
                if let step = step.withLock({ $0 }) {
                    let time = ProgressText.clock(.now - step.begun)
                    display.show(step.number, "step \(step.number): \(step.name), \(time)")
                }
                try? await Task.sleep(for: .milliseconds(200))
            }
            display.end()
        }
        do {
            let value = try await work()
            display.cancel()
            await display.value
            return value
        } catch {
            display.cancel()
            await display.value
            throw error
        }
    }
}
