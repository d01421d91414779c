import Foundation
import Logging

/// Writes log lines as `time=… level=… msg="…" key=value …` on standard error: always one line per event.
///
/// swift-log's own handler does not escape messages and values, and text from a database or a peer may hold line ends
/// and terminal escapes.
public struct LogfmtHandler: LogHandler {
    public var logLevel = Logger.Level.info
    public var metadata: Logger.Metadata = [:]
    private let write: @Sendable (String) -> Void

    public init(label: String, write: @escaping @Sendable (String) -> Void = LogfmtHandler.standardError) {
        self.write = write
    }

    /// One write a line, so that lines of several threads do not mix. A line that cannot be written is lost: there is
    /// no other place to report it.
    public static let standardError: @Sendable (String) -> Void = { line in
        _ = DescriptorOutput.write(line, to: 2)
    }

    public subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    public func log(event: LogEvent) {
        var line =
            "time=\(Date().formatted(.iso8601)) level=\(event.level) msg=\(LogfmtHandler.quoted("\(event.message)"))"
        let all = metadata.merging(event.metadata ?? [:]) { _, own in own }
        for (key, value) in all.sorted(by: { $0.key < $1.key }) {
            line += " \(key)=\(LogfmtHandler.quoted("\(value)"))"
        }
        if let error = event.error { line += " error=\(LogfmtHandler.quoted("\(error)"))" }
        write(line + "\n")
    }

    /// The text is unchanged if that is safe; otherwise it is in double quotes, with all characters escaped that could
    /// end the line, begin a terminal sequence or look like another field.
    static func quoted(_ text: String) -> String {
        let isPlain =
            !text.isEmpty && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != 0x22 && $0 != 0x5C && $0 != 0x3D }
        guard !isPlain else { return text }
        var quoted = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": quoted += "\\\""
            case "\\": quoted += "\\\\"
            case "\n": quoted += "\\n"
            default: write(scalar, to: &quoted)
            }
        }
        return quoted + "\""
    }

    /// A text of several lines for a terminal, with all characters escaped that could begin a terminal sequence or
    /// change the direction of the text.
    public static func escaped(_ text: String) -> String {
        var escaped = ""
        for scalar in text.unicodeScalars {
            if scalar == "\n" { escaped += "\n" } else { write(scalar, to: &escaped) }
        }
        return escaped
    }

    private static func write(_ scalar: Unicode.Scalar, to text: inout String) {
        switch scalar.properties.generalCategory {
        case .control, .lineSeparator, .paragraphSeparator, .format:
            text += "\\u{\(String(scalar.value, radix: 16))}"
        default:
            text.unicodeScalars.append(scalar)
        }
    }
}
