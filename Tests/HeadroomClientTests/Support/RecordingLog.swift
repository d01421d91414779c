import Logging
import Synchronization

/// What the client logged.
final class RecordingLog: Sendable {
    private let recorded = Mutex<[(level: Logger.Level, text: String, metadata: String)]>([])

    var logger: Logger {
        var logger = Logger(label: "test.client") { _ in Handler(log: self) }
        logger.logLevel = .trace
        return logger
    }

    func messages(_ level: Logger.Level) -> [String] {
        recorded.withLock { $0.filter { $0.level == level }.map(\.text) }
    }

    /// All of it, as a log file would have it.
    var text: String {
        recorded.withLock { $0.map { "\($0.text) \($0.metadata)" }.joined(separator: "\n") }
    }

    private struct Handler: LogHandler {
        let log: RecordingLog
        var logLevel = Logger.Level.trace
        var metadata: Logger.Metadata = [:]

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            log.recorded.withLock { $0.append((event.level, "\(event.message)", "\(event.metadata ?? [:])")) }
        }
    }
}
