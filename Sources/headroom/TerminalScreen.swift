import Foundation

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// The terminal as a screen to draw on, and put back as it was at the end.
///
/// @unchecked Sendable: what it was is constant; `close` may come once only.
final class TerminalScreen: @unchecked Sendable {
    private let before: termios?

    /// Nil where standard output is no terminal.
    static func open() -> TerminalScreen? {
        guard isatty(STDOUT_FILENO) == 1 else { return nil }
        return TerminalScreen()
    }

    private init() {
        var settings = termios()
        if isatty(STDIN_FILENO) == 1, tcgetattr(STDIN_FILENO, &settings) == 0 {
            before = settings
            // Keys come one by one and unseen. Ctrl-C still is a signal; Ctrl-Z is nothing, because it would leave the
            // terminal in this state to the shell.
            settings.c_lflag &= ~tcflag_t(ICANON | ECHO)
            withUnsafeMutableBytes(of: &settings.c_cc) { $0[Int(VSUSP)] = 0 }
            tcsetattr(STDIN_FILENO, TCSANOW, &settings)
        } else {
            before = nil
        }
        // The alternate screen, without a cursor.
        write("\u{1B}[?1049h\u{1B}[?25l")
    }

    func close() {
        write("\u{1B}[?25h\u{1B}[?1049l")
        if var before { tcsetattr(STDIN_FILENO, TCSANOW, &before) }
    }

    var size: (width: Int, height: Int) {
        var size = winsize()
        guard ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0, size.ws_row > 0 else {
            return (80, 24)
        }
        return (Int(size.ws_col), Int(size.ws_row))
    }

    /// Line by line over what was there, and nothing below: clearing first would flicker.
    func draw(_ lines: [String]) {
        write("\u{1B}[H" + lines.map { $0 + "\u{1B}[K" }.joined(separator: "\r\n") + "\u{1B}[J")
    }

    /// Returns when q was pressed, or when cancelled. Where there is no keyboard, only then.
    func endKey() async {
        let keys = AsyncStream<UInt8> { continuation in
            guard before != nil else { return }
            // Blocks in read, so it has a thread of its own, which ends with the process.
            Thread.detachNewThread {
                var key: UInt8 = 0
                while read(STDIN_FILENO, &key, 1) == 1 { continuation.yield(key) }
                continuation.finish()
            }
        }
        for await key in keys where key == UInt8(ascii: "q") || key == UInt8(ascii: "Q") { return }
        // The keyboard is gone, the terminal perhaps not.
        if !Task.isCancelled { try? await Task.sleep(for: .seconds(1_000_000)) }
    }

    private func write(_ text: String) {
        FileHandle.standardOutput.write(Data(text.utf8))
    }
}
