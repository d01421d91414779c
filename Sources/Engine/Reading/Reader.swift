import Logging
import Postgres
import Synchronization

/// Reads the whole table for dashboards, away from the lanes: on a connection and a thread of its own, one reading at a
/// time, pausing between portions three times as long as each took, so that it never has more than a quarter of a core of
/// the database.
public final class Reader: Sendable {
    /// Requests that may wait: far more than there are dashboards.
    static let capacity = 1_024
    private static let restPerWork = 3
    /// A connection that nobody needs is given back after so long.
    private static let idleTimeout = Duration.seconds(30)

    private let queue = Mutex(ReadingQueue(capacity: Reader.capacity))
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

    /// Takes in a request, from any thread; its outcome comes through its mailbox, unless it is refused at once.
    public func enqueue(_ request: ReadingRequest) -> EngineError? {
        let refusal = queue.withLock { $0.enqueue(request) }
        if refusal == nil { wake.wake() }
        return refusal
    }

    /// The service shuts down, and answers by then whoever still waits.
    public func drain(by deadline: ContinuousClock.Instant) {
        queue.withLock { $0.drain(by: deadline) }
        wake.wake()
    }

    /// Takes in nothing more; `run` returns when everybody who was taken in has an outcome.
    func close() {
        queue.withLock { $0.close() }
        wake.wake()
    }

    /// The reader's thread.
    func run() {
        let session = ReconnectingSession<Void>(
            options: configuration.readerOptions,
            statements: PagedTableScan.statements,
            wake: wake,
            logger: logger
        )
        var underWay: PagedTableScan?
        while true {
            _ = expire()
            guard let turn = queue.withLock({ $0.next() }) else {
                underWay = nil
                if queue.withLock({ $0.isDrained }) { break }
                session.sleepIdle(timeout: Reader.idleTimeout)
                continue
            }
            session.advance()
            guard session.connection != nil else {
                // What was summed up is kept for no other connection: begin again.
                underWay = nil
                awaitConnection(session)
                continue
            }
            var table = table(turn, underWay)
            let started = ContinuousClock.now
            do throws(PostgresError) {
                if let outcome = try table.advance(on: session, deadline: expire) {
                    finish(outcome)
                    underWay = nil
                } else {
                    underWay = table
                }
            } catch {
                underWay = nil
                fail(error, session)
            }
            pause(for: (ContinuousClock.now - started) * Reader.restPerWork)
        }
        session.close()
    }

    private func table(_ turn: ReadingQueue.Turn, _ underWay: PagedTableScan?) -> PagedTableScan {
        switch turn {
        case .begin(let reading): PagedTableScan(reading, invalidValues)
        case .goOn(let reading): underWay ?? PagedTableScan(reading, invalidValues)
        }
    }

    /// Answers those whose time is up.
    ///
    /// - Returns: when the next one's is.
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
            logger.error("a reading failed", metadata: ["error": "\(error)"])
            finish(.failure(EngineError(.internal, "the reading failed; the service's log says why")))
        }
    }

    /// A short absence is ridden out, for as long as any other request would be.
    private func awaitConnection(_ session: ReconnectingSession<Void>) {
        if let since = session.downSince, ContinuousClock.now - since > configuration.requestTimeout {
            mailboxes.deliver(queue.withLock { $0.refuseAll(.readerIsAway) })
            session.close()
            return
        }
        let deadlines = [queue.withLock { $0.nextDeadline }, session.retryAt].compactMap(\.self)
        _ = wake.sleep(orUntilReadable: -1, until: deadlines.min())
    }

    private func pause(for duration: Duration) {
        let until = ContinuousClock.now + duration
        // Who asks meanwhile wakes us, and changes nothing.
        while ContinuousClock.now < until {
            let next = expire() ?? until
            _ = wake.sleep(orUntilReadable: -1, until: min(next, until))
        }
    }
}
