import Logging
import Synchronization

/// Records log events, so that tests can compare them.
public final class RecordingLog: Sendable {
    public struct Event: Sendable, CustomStringConvertible {
        public var level: Logger.Level
        public var message: String
        public var metadata: String

        public var description: String { "\(level) \(message) \(metadata)" }
    }

    private let recorded = Mutex<[Event]>([])

    public init() {}

    public var events: [Event] { recorded.withLock { $0 } }

    public func messages(_ level: Logger.Level) -> [String] { events.filter { $0.level == level }.map(\.message) }

    public func count(of message: String) -> Int { events.count { $0.message == message } }

    /// All events as the text of a log file.
    public var text: String { events.map(\.description).joined(separator: "\n") }

    public var logger: Logger { Logger(label: "test") { _ in Handler(log: self) } }

    private struct Handler: LogHandler {
        let log: RecordingLog
        var logLevel = Logger.Level.trace
        var metadata: Logger.Metadata = [:]

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            let text = "\(metadata.merging(event.metadata ?? [:]) { _, own in own })"
            log.recorded.withLock { $0.append(Event(level: event.level, message: "\(event.message)", metadata: text)) }
        }
    }
}

extension Logger {
    /// A logger for tests that do not use the log.
    public static let silent = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
}
