import Logging
import Synchronization

/// What the store logged, for tests that hold it against what happened.
final class RecordingLog: Sendable {
    struct Event: Sendable {
        var level: Logger.Level
        var message: String
        var metadata: String
    }

    private let recorded = Mutex<[Event]>([])

    var events: [Event] { recorded.withLock { $0 } }

    func count(of message: String) -> Int {
        events.count { $0.message == message }
    }

    var logger: Logger {
        var logger = Logger(label: "test.store") { _ in Handler(log: self) }
        logger.logLevel = .debug
        return logger
    }

    private struct Handler: LogHandler {
        let log: RecordingLog
        var logLevel = Logger.Level.debug
        var metadata: Logger.Metadata = [:]

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            let text = "\(metadata.merging(event.metadata ?? [:]) { _, own in own })"
            log.recorded.withLock {
                $0.append(Event(level: event.level, message: "\(event.message)", metadata: text))
            }
        }
    }
}
