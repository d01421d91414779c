import Foundation
import OperatorConsole
import ServiceCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// The terminal on standard output.
enum Terminal {
    /// Whether it supports sequences that move the cursor.
    static var movesCursor: Bool {
        let kind = getenv("TERM").map { String(cString: $0) } ?? ""
        return !kind.isEmpty && kind != "dumb"
    }

    /// Whether to use colours. NO_COLOR is defined at https://no-color.org.
    static var showsColours: Bool {
        movesCursor && getenv("NO_COLOR").map { $0.pointee == 0 } ?? true
    }

    /// The terminal's size; nil if standard output is not a terminal.
    static var size: (width: Int, height: Int)? {
        var size = winsize()
        guard isatty(STDOUT_FILENO) == 1 else { return nil }
        guard ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0, size.ws_row > 0 else {
            return (80, 24)
        }
        return (Int(size.ws_col), Int(size.ws_row))
    }
}

/// The terminal as a screen to draw on. `close` restores its former state.
///
/// @unchecked Sendable: all properties are constant; `close` is called once.
final class TerminalScreen: @unchecked Sendable {
    private let before: termios?
    private let showsColours = Terminal.showsColours

    /// Opens the screen. The result is nil if standard output is not a terminal, or one that cannot move its cursor.
    static func open() -> TerminalScreen? {
        guard isatty(STDOUT_FILENO) == 1, Terminal.movesCursor else { return nil }
        return TerminalScreen()
    }

    private init() {
        var settings = termios()
        if isatty(STDIN_FILENO) == 1, tcgetattr(STDIN_FILENO, &settings) == 0 {
            before = settings
            // Keys arrive one by one, without echo. Ctrl-C is still a signal; Ctrl-Z is disabled, because it would
            // leave the terminal in this state to the shell.
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

    /// How to quit.
    var footer: String { before == nil ? "Ctrl-C quits" : "q quits" }

    /// Overwrites the lines, then clears the rest: clearing first would flicker.
    func draw(_ lines: [ScreenLine]) throws(StandardOutput.Failure) {
        let text = lines.map { styled($0) + "\u{1B}[K" }.joined(separator: "\r\n")
        try StandardOutput.print("\u{1B}[H" + text + "\u{1B}[J", terminator: "")
    }

    private func styled(_ line: ScreenLine) -> String {
        // Select Graphic Rendition: bold, faint, yellow, red.
        let style: String? =
            switch line.emphasis {
            case .none: nil
            case .heading: "1"
            case .aside: "2"
            case .warning: "33"
            case .alarm: "31"
            }
        guard let style, showsColours else { return line.text }
        return "\u{1B}[\(style)m\(line.text)\u{1B}[0m"
    }

    /// Returns when q is pressed, or when cancelled; without a keyboard, only when cancelled.
    func quitKey() async {
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
        // Standard input has ended; the terminal may still show output.
        if !Task.isCancelled { try? await Task.sleep(for: .seconds(1_000_000)) }
    }

    /// Ignores errors: if the write fails, the terminal no longer exists.
    private func write(_ text: String) {
        _ = DescriptorOutput.write(text, to: STDOUT_FILENO)
    }
}
