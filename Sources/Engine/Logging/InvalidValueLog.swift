import Logging
import Postgres
import Synchronization

/// Logs each column in which an invalid value was met once, and what else makes a row unreadable once by its SQLSTATE:
/// a user with such a row may ask many times a second.
final class InvalidValueLog: Sendable {
    /// As many as there are columns, and codes, at most.
    private let reported = Mutex<Set<String>>([])
    private let logger: Logger

    init(_ logger: Logger) {
        self.logger = logger
    }

    /// - Parameter message: in place of the usual one.
    func record(_ error: PostgresError, as message: Logger.Message? = nil) {
        // The message of an invalid value names the column and nothing else; others may hold the value.
        let cause = error.isAboutInvalidValue ? error.message : error.sqlState?.rawValue ?? ""
        guard reported.withLock({ $0.insert(cause).inserted }) else { return }
        let usual: Logger.Message =
            error.isAboutInvalidValue
            ? "a value in the database is out of range" : "a row in the database cannot be read"
        logger.error(message ?? usual, metadata: ["error": "\(error)"])
    }
}
