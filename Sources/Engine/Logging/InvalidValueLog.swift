import Logging
import Postgres
import Synchronization

/// Logs each column with an invalid value once, and other reasons why a row is unreadable once per SQLSTATE, because a
/// user with such a row may send many requests a second.
final class InvalidValueLog: Sendable {
    /// What was logged, at most one entry for each column and SQLSTATE.
    private let reported = Mutex<Set<String>>([])
    private let logger: Logger

    init(_ logger: Logger) {
        self.logger = logger
    }

    /// - Parameter message: the message to log instead of the usual one.
    func record(_ error: PostgresError, as message: Logger.Message? = nil) {
        // The message of an invalid value names only the column; others may contain the value.
        let cause = error.isAboutInvalidValue ? error.message : error.sqlState?.rawValue ?? ""
        guard reported.withLock({ $0.insert(cause).inserted }) else { return }
        let usual: Logger.Message =
            error.isAboutInvalidValue
            ? "a value in the database is out of range" : "a row in the database cannot be read"
        logger.error(message ?? usual, metadata: ["error": "\(error)"])
    }
}
