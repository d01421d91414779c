import Logging
import Postgres
import Synchronization
import Usage

/// One database connection and its thread, working like a ferry: it takes all requests that wait, carries them over in
/// one statement, answers them all after the commit, and takes whatever gathered meanwhile. No timer and no linger: an
/// idle lane leaves at once with a batch of one, and load makes batches grow by themselves.
final class Lane: Sendable {
    private let queue: Mutex<LaneQueue>
    private let wake = WakePipe()
    private let gauges = Mutex(Gauges())
    let metrics = LaneMetrics()
    private let configuration: EngineConfiguration
    private let mailboxes: MailboxRegistry
    private let invalidValues: InvalidValueLog
    private let logger: Logger

    /// What others may know of a lane.
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
                loadMaximum: configuration.batchMaximum,
                waitMaximum: configuration.queueWaitMaximum
            )
        )
        var logger = logger
        logger[metadataKey: "lane.index"] = "\(index)"
        self.logger = logger
    }

    /// Takes in requests, from any thread; hands back those that it refuses.
    func enqueue(_ requests: [Request]) -> ([Request], EngineError)? {
        let (action, refused) = queue.withLock { $0.enqueue(requests) }
        if action == .wakeLane { wake.wake() }
        return refused
    }

    var queueDepth: Int { queue.withLock { $0.count } }
    var snapshot: Gauges { gauges.withLock { $0 } }

    /// Takes in nothing more; `run` returns when everything that was taken in is answered.
    func close() {
        _ = queue.withLock { $0.close() }
        wake.wake()
    }

    /// The lane's thread.
    func run() {
        let link = LaneConnection(options: configuration.sessionOptions("lane"), wake: wake, logger: logger)
        var carrier = BatchExecutor(
            link: link,
            wake: wake,
            configuration: configuration,
            metrics: metrics,
            invalidValues: invalidValues,
            logger: logger
        )
        while true {
            expireWaiting()
            link.advance()
            gauges.withLock {
                $0.isConnected = link.connection != nil
                $0.reconnects = link.reconnects
            }
            guard let connection = link.connection else {
                queue.withLock { $0.rest() }
                refuseWhenAway(link)
                if queue.withLock({ $0.isDrained }) { break }
                let deadlines = [queue.withLock { $0.nextDeadline }, link.retryAt].compactMap(\.self)
                // Nobody wakes us for a request that comes now; its deadline is not before this.
                let latest = ContinuousClock.now + configuration.requestTimeout
                _ = wake.sleep(orUntilReadable: -1, until: deadlines.reduce(latest, min))
                continue
            }
            queue.withLock { $0.reopen() }
            switch queue.withLock({ $0.take(atMost: configuration.batchMaximum) }) {
            case .batch(let requests):
                count(requests)
                carrier.carry(Batch(requests)) { mailboxes.deliver($0) }
            case .single(let request):
                mailboxes.deliver([carrier.carry(request)])
            case nil:
                if queue.withLock({ $0.isDrained }) {
                    link.close()
                    return
                }
                // An idle connection has nothing to say unless it is closing: learn that now, not with a request.
                if wake.sleep(orUntilReadable: connection.socket, until: nil) {
                    checkIdle(connection, link)
                }
            }
        }
        link.close()
    }

    /// All requests have the same time, so the deadline of one tells when it came. The first has waited longest, but for
    /// those of connections that let others go first.
    private func count(_ requests: [Request]) {
        guard let first = requests.first else { return }
        metrics.batchSizes.record(UInt64(requests.count))
        metrics.queueWaits.record(.now - (first.deadline - configuration.requestTimeout))
    }

    private func checkIdle(_ connection: Connection, _ link: LaneConnection) {
        do throws(PostgresError) {
            _ = try connection.query("select 1", deadline: .now + configuration.requestTimeout)
        } catch {
            link.drop(error)
        }
    }

    private func expireWaiting() {
        let expired = queue.withLock { $0.expire(at: .now) }
        guard !expired.isEmpty else { return }
        mailboxes.deliver(
            expired.map { Completion(returnAddress: $0.returnAddress, outcome: .failure(.unavailable)) }
        )
    }

    /// A short absence is ridden out; once it has lasted as long as anybody waits, waiting helps nobody.
    private func refuseWhenAway(_ link: LaneConnection) {
        guard let since = link.downSince, ContinuousClock.now - since > configuration.requestTimeout else { return }
        queue.withLock { $0.refuse() }
    }
}
