import Logging
import Postgres
import Synchronization
import Usage

/// One database connection and its thread: it takes all requests that wait, executes them in one statement, answers
/// them after the commit, and takes the requests that have arrived meanwhile. It waits for no further requests: an idle
/// lane executes a batch of one at once, and under load batches grow by themselves.
final class Lane: Sendable {
    private let queue: Mutex<LaneQueue>
    private let wake = WakePipe()
    private let gauges = Mutex(Gauges())
    let metrics = LaneMetrics()
    private let configuration: EngineConfiguration
    private let mailboxes: MailboxRegistry
    private let invalidValues: InvalidValueLog
    private let logger: Logger

    struct Gauges: Sendable {
        var isConnected = false
        var reconnects = 0
    }

    init(
        _ configuration: EngineConfiguration,
        mailboxes: MailboxRegistry,
        index: Int,
        invalidValues: InvalidValueLog,
        logger: Logger
    ) {
        self.configuration = configuration
        self.mailboxes = mailboxes
        self.invalidValues = invalidValues
        queue = Mutex(
            LaneQueue(
                capacity: configuration.queueCapacity / configuration.lanes,
                batchMaximum: configuration.batchMaximum,
                waitMaximum: configuration.queueWaitMaximum
            )
        )
        var logger = logger
        logger[metadataKey: "lane.index"] = "\(index)"
        self.logger = logger
    }

    /// Accepts requests, from any thread, and returns those that it refuses.
    func enqueue(_ requests: [Request]) -> ([Request], EngineError)? {
        let (action, refused) = queue.withLock { $0.enqueue(requests) }
        if action == .wakeLane { wake.wake() }
        return refused
    }

    var queueDepth: Int { queue.withLock { $0.count } }
    var currentGauges: Gauges { gauges.withLock { $0 } }

    /// Accepts nothing more; `run` returns when every accepted request is answered.
    func close() {
        _ = queue.withLock { $0.close() }
        wake.wake()
    }

    /// The lane's thread.
    func run() {
        let link = LaneConnection(options: configuration.sessionOptions("lane"), wake: wake, logger: logger)
        let sender = ExactlyOnceSender(link: link, wake: wake, metrics: metrics, logger: logger)
        let errors = DatabaseErrors(link: link, invalidValues: invalidValues, logger: logger)
        var executor = BatchExecutor(sender: sender, errors: errors, configuration: configuration)
        let unbatched = UnbatchedExecutor(
            sender: sender,
            errors: errors,
            unknownUsersPolicy: configuration.unknownUsersPolicy
        )
        while true {
            expireWaiting(link)
            link.advance()
            gauges.withLock {
                $0.isConnected = link.connection != nil
                $0.reconnects = link.reconnects
            }
            guard let connection = link.connection else {
                queue.withLock { $0.rest() }
                refuseWhenDown(link)
                if queue.withLock({ $0.isDrained }) { break }
                let deadlines = [queue.withLock { $0.nextDeadline }?.instant, link.retryAt].compactMap(\.self)
                // A request that arrives now does not wake the lane; its deadline is not before this.
                let latest = ContinuousClock.now + configuration.requestTimeout
                _ = wake.sleep(orUntilReadable: -1, until: deadlines.reduce(latest, min))
                continue
            }
            queue.withLock { $0.reopen() }
            switch queue.withLock({ $0.take(atMost: configuration.batchMaximum) }) {
            case .batch(let requests):
                record(requests)
                executor.execute(Batch(requests)) { mailboxes.deliver($0) }
            case .unbatched(let request):
                mailboxes.deliver([unbatched.execute(request)])
            case nil:
                if queue.withLock({ $0.isDrained }) {
                    link.close()
                    return
                }
                // An idle connection is readable only when it is closing: find out now, not with the next request.
                if wake.sleep(orUntilReadable: connection.socket, until: nil) {
                    checkIdle(connection, link)
                }
            }
        }
        link.close()
    }

    /// All requests have the same time limit, so the deadline of one shows when it arrived. The first has waited
    /// longest, except for those of connections that others took turns with.
    private func record(_ requests: [BatchedRequest]) {
        guard let first = requests.first else { return }
        metrics.batchSizes.record(UInt64(requests.count))
        metrics.queueWaits.record(.now - (first.deadline.instant - configuration.requestTimeout))
    }

    private func checkIdle(_ connection: Connection, _ link: LaneConnection) {
        do throws(PostgresError) {
            _ = try connection.query("select 1", deadline: .now + configuration.requestTimeout)
        } catch {
            link.drop(error)
        }
    }

    private func expireWaiting(_ link: LaneConnection) {
        let expired = queue.withLock { $0.expire(at: Deadline(.now)) }
        guard !expired.isEmpty else { return }
        // With a connection they waited for the batches before them.
        let error = link.connection == nil ? link.failure : .late
        mailboxes.deliver(expired.map { Completion(returnAddress: $0, outcome: .failure(error)) })
    }

    /// A short outage is waited for. After one as long as a request may take, new requests are refused at once.
    private func refuseWhenDown(_ link: LaneConnection) {
        guard let since = link.downSince, ContinuousClock.now - since > configuration.requestTimeout else { return }
        let error = link.failure
        queue.withLock { $0.refuse(with: error) }
    }
}
