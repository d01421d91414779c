import Foundation
import HeadroomServer
import OperatorConsole

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// What the terminal can show.
enum Terminal {
    /// Whether it takes sequences that move the cursor.
    static var movesCursor: Bool {
        let kind = getenv("TERM").map { String(cString: $0) } ?? ""
        return !kind.isEmpty && kind != "dumb"
    }

    /// Whether colours are wanted; https://no-color.org says what NO_COLOR means.
    static var showsColours: Bool {
        movesCursor && getenv("NO_COLOR").map { $0.pointee == 0 } ?? true
    }

    /// Nil where standard output is no terminal.
    static var size: (width: Int, height: Int)? {
        var size = winsize()
        guard isatty(STDOUT_FILENO) == 1 else { return nil }
        guard ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0, size.ws_row > 0 else {
            return (80, 24)
        }
        return (Int(size.ws_col), Int(size.ws_row))
    }
}

/// The terminal as a screen to draw on, and put back as it was at the end.
///
/// @unchecked Sendable: what it was is constant; `close` may come once only.
final class TerminalScreen: @unchecked Sendable {
    private let before: termios?
    private let showsColours = Terminal.showsColours

    /// Nil where standard output is no terminal, or one that cannot be drawn on.
    static func open() -> TerminalScreen? {
        guard isatty(STDOUT_FILENO) == 1, Terminal.movesCursor else { return nil }
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

    /// How it is ended.
    var footer: String { before == nil ? "Ctrl-C quits" : "q quits" }

    /// Line by line over what was there, and nothing below: clearing first would flicker.
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

    /// Where that fails there is no terminal any more that could be left in disorder.
    private func write(_ text: String) {
        _ = DescriptorOutput.write(text, to: STDOUT_FILENO)
    }
}
