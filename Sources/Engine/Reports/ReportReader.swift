import Logging
import Postgres
import Synchronization

/// Scans the whole usage table for reports, apart from the lanes: on a connection and a thread of its own, one scan at
/// a time. It pauses after each range of pages three times as long as the range took, so that it uses at most a quarter
/// of a core of the database.
public final class ReportReader: Sendable {
    /// The most requests that may wait, far more than there are dashboards.
    static let capacity = 1_024
    private static let pausePerWork = 3
    /// The time after which an unused connection is closed.
    private static let idleTimeout = Duration.seconds(30)

    private let queue = Mutex(ReportQueue(capacity: ReportReader.capacity))
    private let wake = WakePipe()
    private let configuration: EngineConfiguration
    private let mailboxes: MailboxRegistry
    private let invalidValues: InvalidValueLog
    private let logger: Logger

    init(
        _ configuration: EngineConfiguration,
        mailboxes: MailboxRegistry,
        invalidValues: InvalidValueLog,
        logger: Logger
    ) {
        self.configuration = configuration
        self.mailboxes = mailboxes
        self.invalidValues = invalidValues
        self.logger = logger
    }

    /// Accepts a request, from any thread. Its outcome is delivered through its mailbox.
    ///
    /// - Returns: the error if the request is not accepted; else nil.
    public func enqueue(_ request: ReportRequest) -> EngineError? {
        let error = queue.withLock { $0.enqueue(request) }
        if error == nil { wake.wake() }
        return error
    }

    /// Begins the shutdown: requests that still wait at `deadline` fail.
    public func drain(by deadline: ContinuousClock.Instant) {
        queue.withLock { $0.drain(by: deadline) }
        wake.wake()
    }

    /// Accepts no more requests; `run` returns when every accepted request has an outcome.
    func close() {
        queue.withLock { $0.close() }
        wake.wake()
    }

    /// Runs on a thread of its own until `close`.
    func run() {
        let session = ReconnectingSession<Void>(
            options: configuration.readerOptions,
            statements: PagedTableScan.statements,
            wake: wake,
            logger: logger
        )
        var scan: PagedTableScan?
        while true {
            _ = expire()
            guard let step = queue.withLock({ $0.next() }) else {
                scan = nil
                if queue.withLock({ $0.isDrained }) { break }
                session.sleepIdle(timeout: ReportReader.idleTimeout)
                continue
            }
            session.advance()
            guard session.connection != nil else {
                // A scan starts again on another connection.
                scan = nil
                awaitConnection(session)
                continue
            }
            var current =
                switch step {
                case .start(let query): PagedTableScan(query, invalidValues)
                case .proceed(let query): scan ?? PagedTableScan(query, invalidValues)
                }
            scan = nil
            let started = ContinuousClock.now
            do throws(PostgresError) {
                if let outcome = try current.advance(on: session, deadline: expire) {
                    finish(outcome)
                } else {
                    scan = current
                }
            } catch {
                fail(error, session)
            }
            pause(for: (ContinuousClock.now - started) * ReportReader.pausePerWork)
        }
        session.close()
    }

    /// Fails the requests whose deadline has passed.
    ///
    /// - Returns: the next deadline; nil if no request waits.
    private func expire() -> ContinuousClock.Instant? {
        let (expired, next) = queue.withLock { ($0.expire(at: .now), $0.nextDeadline) }
        mailboxes.deliver(expired)
        return next
    }

    private func finish(_ outcome: Outcome) {
        mailboxes.deliver(queue.withLock { $0.finish(outcome) })
    }

    private func fail(_ error: PostgresError, _ session: ReconnectingSession<Void>) {
        if error.isTransient {
            session.drop(error)
        } else {
            logger.error("a report failed", metadata: ["error": "\(error)"])
            finish(.failure(EngineError(.internal, "the report failed; the service's log says why")))
        }
    }

    /// Waits for the connection, and fails all requests if the database is unavailable for the request timeout.
    private func awaitConnection(_ session: ReconnectingSession<Void>) {
        if let since = session.downSince, ContinuousClock.now - since > configuration.requestTimeout {
            mailboxes.deliver(queue.withLock { $0.failAll(.reportsUnavailable) })
            session.close()
            return
        }
        let deadlines = [queue.withLock { $0.nextDeadline }, session.retryAt].compactMap(\.self)
        _ = wake.sleep(orUntilReadable: -1, until: deadlines.min())
    }

    private func pause(for duration: Duration) {
        let until = ContinuousClock.now + duration
        // A request that arrives meanwhile ends the sleep, but not the pause.
        while ContinuousClock.now < until {
            let next = expire() ?? until
            _ = wake.sleep(orUntilReadable: -1, until: min(next, until))
        }
    }
}
