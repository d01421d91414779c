import Logging
import Postgres
import Synchronization
import Usage

/// Counts messages in PostgreSQL, in batches: the lanes, and what they share.
///
/// Each user belongs to one lane, so that a user's requests keep their order whatever the others do.
public final class BatchingEngine: Sendable {
    public let configuration: EngineConfiguration
    private let lanes: [Lane]
    private let router: LaneRouter
    private let placements: CurrentPlacements
    /// The words that answers are written with.
    public let words: CurrentWords
    /// Reads about all users of a period.
    public let reports: ReportReader
    /// Publishes changes of users' usage.
    public let changes: ChangePublisher
    /// The users to notify; nil if the service sends no notifications.
    package let crossedUsers: CrossedUsers?
    /// The traces of requests; nil if the service traces nothing.
    package let traces: RequestTraces?
    private let mailboxes = MailboxRegistry()
    private let running = Mutex(0)

    /// - Parameters:
    ///   - placements: the placements, which the monitor keeps current; nil in a database that is not distributed.
    ///   - traces: the traces of requests; nil if the service traces nothing.
    public init(
        _ configuration: EngineConfiguration,
        placements: CurrentPlacements? = nil,
        traces: RequestTraces? = nil,
        logger: Logger
    ) {
        self.configuration = configuration
        self.traces = traces
        let placements = placements ?? CurrentPlacements(configuration.database)
        self.placements = placements
        let mailboxes = mailboxes
        let words = CurrentWords(standard: configuration.language)
        self.words = words
        let router = LaneRouter(laneCount: configuration.lanes)
        let buckets = CurrentBuckets { [weak router] in router?.follow($0) }
        self.router = router
        let invalidValues = InvalidValueLog(logger)
        let crossedUsers = configuration.sendsNotifications ? CrossedUsers() : nil
        self.crossedUsers = crossedUsers
        lanes = (0..<configuration.lanes).map { index in
            Lane(
                configuration,
                mailboxes: mailboxes,
                words: words,
                buckets: buckets,
                placements: placements,
                index: index,
                crossedUsers: crossedUsers,
                traces: traces,
                invalidValues: invalidValues,
                logger: logger
            )
        }
        router.attach(lanes)
        let laneCount = configuration.lanes
        placements.observe { [weak router] placements in
            router?.follow(placements)
            guard placements.homeCount > laneCount else { return }
            logger.warning(
                "there are fewer lanes than workers: some workers are reached through others; restart the service",
                metadata: ["lanes": "\(laneCount)", "workers": "\(placements.homeCount)"]
            )
        }
        reports = ReportReader(configuration, mailboxes: mailboxes, invalidValues: invalidValues, logger: logger)
        changes = ChangePublisher(
            configuration,
            mailboxes: mailboxes,
            words: words,
            invalidValues: invalidValues,
            logger: logger
        )
    }

    /// The state of the lanes that `INFO` shows.
    public struct Snapshot: Sendable {
        public var lanes: Int
        public var lanesConnected: Int
        public var queueDepth: Int
        public var batches: UInt64
        public var requests: UInt64
        public var reconnects: Int
        /// The servers of a distributed database; empty in another.
        public var nodes: [Node]
    }

    /// A server of a distributed database.
    public struct Node: Sendable {
        public var address: String
        public var lanesConnected: Int
        public var buckets: Int
    }

    public var snapshot: Snapshot {
        let gauges = lanes.map(\.currentGauges)
        let batchSizes = lanes.map(\.metrics.batchSizes.counts)
        return Snapshot(
            lanes: lanes.count,
            lanesConnected: gauges.count { $0.isConnected },
            queueDepth: lanes.reduce(0) { $0 + $1.queueDepth },
            batches: batchSizes.reduce(0) { $0 + $1.count },
            requests: batchSizes.reduce(0) { $0 + $1.sum },
            reconnects: gauges.reduce(0) { $0 + $1.reconnects },
            nodes: nodes(gauges)
        )
    }

    private func nodes(_ gauges: [Lane.Gauges]) -> [Node] {
        let placements = placements.current
        return zip(placements.nodes, placements.bucketCounts).enumerated().map { index, node in
            Node(
                address: "\(node.0.servers[0])",
                lanesConnected: gauges.enumerated().count {
                    $0.offset % placements.homeCount == index && $0.element.isConnected
                },
                buckets: node.1
            )
        }
    }

    public var metrics: EngineMetrics { EngineMetrics(lanes) }

    /// The messages that were counted and denied since the start.
    public var activity: Activity {
        lanes.reduce(Activity()) {
            $0 + Activity(messages: $1.metrics[.messages], blocked: $1.metrics.blocked)
        }
    }

    /// Registers a receiver of outcomes.
    ///
    /// - Returns: its index, for `ReturnAddress` and `ChangeSubscriber`.
    public func register(_ mailbox: any Mailbox) -> Int {
        mailboxes.register(mailbox)
    }

    /// The lane of each user's requests.
    public var routes: LaneRoutes { router.current }

    /// Makes a reader for a thread that submits many requests.
    public func makeRoutesReader() -> LaneRoutesReader { LaneRoutesReader(router) }

    /// Passes requests to `lane`, which must be the lane of every one of them by routes that were read since the same
    /// thread has submitted other requests. Each gets an outcome through its mailbox, except those that are refused at
    /// once and returned.
    public func enqueue(_ requests: [Request], lane: Int) -> ([Request], EngineError)? {
        let enqueued = lanes[lane].enqueue(requests)
        // Forwarded requests go to the lanes that have their users by now. These lanes may forward them once more.
        for (lane, forwarded) in enqueued.forwarded {
            guard let (refused, error) = enqueue(forwarded, lane: lane) else { continue }
            mailboxes.deliver(refused.map { Completion(returnAddress: $0.returnAddress, outcome: .failure(error)) })
        }
        return enqueued.refused
    }

    /// Runs until `close()` was called and every accepted request was answered.
    public func run() async {
        let router = router
        await withTaskGroup(of: Void.self) { group in
            for (index, lane) in lanes.enumerated() {
                group.addTask { await runThread(named: "headroom.lane\(index)") { lane.run(router) } }
            }
            let (reports, changes) = (reports, changes)
            group.addTask { await runThread(named: "headroom.reports") { reports.run() } }
            group.addTask { await runThread(named: "headroom.changes") { changes.run() } }
        }
    }

    /// Accepts no more requests.
    public func close() {
        for lane in lanes { lane.close() }
        reports.close()
        changes.close()
    }
}

/// Runs work that blocks on a thread of its own, and awaits its end.
func runThread(named name: String, _ work: @escaping @Sendable () -> Void) async {
    await withCheckedContinuation { continuation in
        startThread(named: name) {
            work()
            continuation.resume()
        }
    }
}

/// The mailboxes of the engine's clients, by index.
final class MailboxRegistry: Sendable {
    private let mailboxes = Mutex<[any Mailbox]>([])

    func register(_ mailbox: any Mailbox) -> Int {
        mailboxes.withLock {
            $0.append(mailbox)
            return $0.count - 1
        }
    }

    /// Delivers completions, with one call for each mailbox that they concern.
    func deliver(_ completions: consuming [Completion]) {
        guard !completions.isEmpty else { return }
        let mailboxes = mailboxes.withLock { $0 }
        // Most batches concern one mailbox. Nothing is copied then.
        let first = completions[0].returnAddress.mailboxIndex
        if mailboxes.count == 1 || completions.allSatisfy({ $0.returnAddress.mailboxIndex == first }) {
            mailboxes[first].deliver(completions)
            return
        }
        let all = completions
        for (index, mailbox) in mailboxes.enumerated() {
            let own = all.filter { $0.returnAddress.mailboxIndex == index }
            if !own.isEmpty { mailbox.deliver(own) }
        }
    }

    func publish(_ publications: [Publication]) {
        guard !publications.isEmpty else { return }
        for (index, mailbox) in mailboxes.withLock({ $0 }).enumerated() {
            let own = publications.filter { $0.subscriber.mailboxIndex == index }
            if !own.isEmpty { mailbox.publish(own) }
        }
    }
}
