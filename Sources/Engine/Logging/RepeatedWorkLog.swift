import Logging
import Postgres
import Synchronization

/// Logs the failures of periodic work once per series: the first one is a warning, later ones are at level debug, and
/// the next success is a notice.
///
/// Failures to reach the database are always at level debug, because the lanes log them.
final class RepeatedWorkLog: Sendable {
    private let work: String
    private let logger: Logger
    private let isFailing = Mutex(false)

    /// - Parameter work: the name of the work in the log, such as "deleting old keys".
    init(_ work: String, _ logger: Logger) {
        self.work = work
        self.logger = logger
    }

    func failed(_ error: any Error) {
        let metadata: Logger.Metadata = ["error": "\(error)"]
        switch (error as? PostgresError)?.kind {
        case .connectFailed, .connectionLost, .timedOut:
            logger.debug("\(work) failed", metadata: metadata)
        case .server, .misuse, nil:
            let isFirst = isFailing.withLock { isFailing in
                defer { isFailing = true }
                return !isFailing
            }
            logger.log(level: isFirst ? .warning : .debug, "\(work) failed; it is tried again", metadata: metadata)
        }
    }

    func succeeded() {
        let hadFailed = isFailing.withLock { isFailing in
            defer { isFailing = false }
            return isFailing
        }
        if hadFailed { logger.notice("\(work) works again") }
    }
}
