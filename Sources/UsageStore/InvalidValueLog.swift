import Logging
import Postgres
import Synchronization

/// Logs each column in which an invalid value was met once: a user with such a row may ask many times a second.
final class InvalidValueLog: Sendable {
    /// As many as there are columns at most: the error's message names nothing else.
    private let reported = Mutex<Set<String>>([])
    private let logger: Logger

    init(_ logger: Logger) {
        self.logger = logger
    }

    func record(_ error: PostgresError) {
        guard reported.withLock({ $0.insert(error.message).inserted }) else { return }
        logger.error("a value in the database is out of range", metadata: ["error": "\(error)"])
    }
}
