import OperatorConsole
import ServiceCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// Shows on standard error how far a command has come: in one line of a terminal, which it writes anew, or elsewhere in
/// a line every ten seconds.
struct ProgressDisplay {
    private let total: Int
    /// Known with the first call of `show`.
    private var text: ProgressText?
    private let isTerminal = isatty(STDERR_FILENO) == 1 && Terminal.movesCursor
    private let begun = ContinuousClock.now
    private var nextLine = ContinuousClock.now
    private var hasLine = false

    init(total: Int) {
        self.total = total
    }

    /// What is done with the first call was done before.
    mutating func show(_ done: Int, _ detail: String) {
        let text = self.text ?? ProgressText(total: total, doneBefore: done)
        self.text = text
        let now = ContinuousClock.now
        guard now >= nextLine else { return }
        nextLine = now + (isTerminal ? .milliseconds(200) : .seconds(10))
        let line = text.line(done: done, detail, elapsed: now - begun)
        // To the beginning of the line, which is then erased up to its end.
        LogfmtHandler.standardError(isTerminal ? "\r\u{1B}[K\(line)" : line + "\n")
        hasLine = isTerminal
    }

    /// Removes the line, so that the result takes its place.
    func end() {
        if hasLine { LogfmtHandler.standardError("\r\u{1B}[K") }
    }
}
