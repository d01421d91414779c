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
    private let words: CurrentWords
    private let buckets: CurrentBuckets
    private let placements: CurrentPlacements
    let index: Int
    private let crossedUsers: CrossedUsers?
    private let traces: RequestTraces?
    private let invalidValues: InvalidValueLog
    private let logger: Logger

    struct Gauges: Sendable {
        var isConnected = false
        var reconnects = 0
    }

    init(
        _ configuration: EngineConfiguration,
        mailboxes: MailboxRegistry,
        words: CurrentWords,
        buckets: CurrentBuckets,
        placements: CurrentPlacements,
        index: Int,
        crossedUsers: CrossedUsers? = nil,
        traces: RequestTraces? = nil,
        invalidValues: InvalidValueLog,
        logger: Logger
    ) {
        self.configuration = configuration
        self.mailboxes = mailboxes
        self.words = words
        self.buckets = buckets
        self.placements = placements
        self.index = index
        self.crossedUsers = crossedUsers
        self.traces = traces
        self.invalidValues = invalidValues
        queue = Mutex(
            LaneQueue(
                capacity: configuration.queueCapacity / configuration.lanes,
                batchMaximum: configuration.batchMaximum,
                waitMaximum: configuration.queueWaitMaximum,
                requestTimeout: configuration.requestTimeout
            )
        )
        var logger = logger
        logger[metadataKey: "lane.index"] = "\(index)"
        self.logger = logger
    }

    /// Accepts requests, from any thread. The caller answers those that are refused, and passes on the forwarded ones.
    func enqueue(_ requests: [Request]) -> LaneQueue.Enqueued {
        let enqueued = queue.withLock { $0.enqueue(requests) }
        if enqueued.action == .wakeLane { wake.wake() }
        return enqueued
    }

    // MARK: Users of other lanes

    func expect(_ units: [Int]) {
        queue.withLock { $0.expect(units) }
    }

    /// - Parameter transfer: called with the queue locked, at the moment from which this lane forwards requests.
    func handOver(to lanes: [Int?], _ transfer: () -> Void) -> LaneQueue.HandOver {
        queue.withLock { queue in
            let handOver = queue.handOver(to: lanes)
            if handOver == .done { transfer() }
            return handOver
        }
    }

    /// Ends a hand-over before it is done. The requests, which were to be passed on, stay in this lane.
    func keep(_ requests: [Request]) {
        queue.withLock { $0.keep(requests) }
    }

    /// Takes over requests that another lane has accepted. Returns false if this lane has finished.
    func takeOver(_ requests: [Request]) -> Bool {
        let action = queue.withLock { $0.takeOver(requests) }
        if action == .wakeLane { wake.wake() }
        return action != nil
    }

    func wakeUp() {
        wake.wake()
    }

    // MARK: The thread

    /// The number of waiting requests, with those that wait for locked rows.
    var queueDepth: Int { queue.withLock { $0.count + $0.lockedCount } }
    var currentGauges: Gauges { gauges.withLock { $0 } }

    /// Lets the lane accept nothing more; `run` returns when every accepted request is answered.
    func close() {
        _ = queue.withLock { $0.close() }
        wake.wake()
    }

    /// Runs the lane; its thread calls this.
    func run(_ router: LaneRouter) {
        let laneConnection = LaneConnection(
            options: configuration.sessionOptions("lane"),
            primaryLease: configuration.primaryLease,
            words: words,
            buckets: buckets,
            placements: placements,
            lane: index,
            requestTimeout: configuration.requestTimeout,
            wake: wake,
            logger: logger
        )
        let trace = traces.map { LaneTrace($0, lane: index, requestTimeout: configuration.requestTimeout) }
        let sender = ExactlyOnceSender(
            laneConnection: laneConnection,
            delivery: OutcomeDelivery(
                laneConnection: laneConnection,
                mailboxes: mailboxes,
                metrics: metrics,
                crossedUsers: crossedUsers,
                trace: trace
            ),
            logger: logger,
            sleep: { [wake] in _ = wake.sleep(orUntilReadable: laneConnection.lateSocket, until: $0) }
        )
        let errors = DatabaseErrors(laneConnection: laneConnection, invalidValues: invalidValues, logger: logger)
        let locks = RowLocks(laneConnection: laneConnection, logger: logger)
        var work = LaneWork(
            batches: BatchExecutor(sender: sender, errors: errors, locks: locks, configuration: configuration),
            unbatched: UnbatchedExecutor(
                sender: sender,
                errors: errors,
                locks: locks,
                unknownUsersPolicy: configuration.unknownUsersPolicy,
                wake: wake
            ),
            locks: locks,
            trace: trace
        )
        var users = LaneUsers(router)
        while true {
            expireWaiting(laneConnection, trace)
            // The lane follows before it connects, so that it opens only the receipts of its own buckets, and
            // afterwards once more, by the map that it has read.
            follow(router, &users, laneConnection)
            laneConnection.advance()
            follow(router, &users, laneConnection)
            gauges.withLock {
                $0.isConnected = laneConnection.connection != nil
                $0.reconnects = laneConnection.reconnects
            }
            guard let connection = laneConnection.connection else {
                queue.withLock { $0.rest() }
                refuseWhenDown(laneConnection)
                if queue.withLock({ $0.finishIfDrained() }) { break }
                let deadlines = [queue.withLock { $0.nextDeadline }?.instant, laneConnection.retryAt].compactMap(\.self)
                // A request that arrives now does not wake the lane; its deadline is this instant or a later one.
                let latest = ContinuousClock.now + configuration.requestTimeout
                let end = deadlines.reduce(latest, min)
                _ = wake.sleep(orUntilReadable: laneConnection.lateSocket, until: end)
                continue
            }
            let readyUsers = work.unbatched.readyUsers()
            queue.withLock { queue in
                queue.reopen()
                if !readyUsers.isEmpty { queue.note(readyUsers, stillLocked: []) }
            }
            if let next = takeWork() {
                execute(next, &work, laneConnection)
                continue
            }
            if queue.withLock({ $0.finishIfDrained() }) { break }
            sleep(connection, &work, laneConnection)
        }
        laneConnection.close()
    }

    /// Sleeps until it is woken, and executes the work that has arrived. `run` looks at everything else before and
    /// after, not in between, because a client waits.
    private func sleep(_ connection: DatabaseConnection, _ work: inout LaneWork, _ laneConnection: LaneConnection) {
        // An idle connection is readable only when it is closing. The lane finds that out before the next request.
        if wake.sleep(orUntilReadable: connection.socket, until: queue.withLock { $0.nextLook }) {
            checkIdle(connection, laneConnection)
            return
        }
        expireWaiting(laneConnection, work.trace)
        if let next = takeWork() { execute(next, &work, laneConnection) }
    }

    /// The parts that execute a lane's work.
    private struct LaneWork {
        var batches: BatchExecutor
        let unbatched: UnbatchedExecutor
        let locks: RowLocks
        let trace: LaneTrace?
    }

    private func execute(_ next: LaneQueue.Work, _ work: inout LaneWork, _ laneConnection: LaneConnection) {
        switch next {
        case .batch(let requests):
            record(requests)
            work.trace?.begin(requests)
            let locked = work.batches.execute(requests)
            work.trace?.end()
            guard !locked.isEmpty else { return }
            queue.withLock { $0.addLocked(locked.map { Request($0) }, .busy) }
        case .unbatched(let request):
            work.trace?.begin(request)
            let delay = work.unbatched.execute(request)
            work.trace?.end()
            guard let delay else { return }
            queue.withLock { $0.addLocked([Request(request)], delay) }
        case .apart(let next):
            laneConnection.waitBriefly { execute(next, &work, laneConnection) }
        case .look(let users):
            // If the look fails, the rows count as locked, so that they are looked at again.
            let locked = work.locks.locked(among: users) ?? Set(users)
            queue.withLock { $0.note(users, stillLocked: locked) }
        }
    }

    /// The map and the routes by which a lane finds its users.
    private struct LaneUsers {
        var map = BucketMap.undivided
        var reader: LaneRoutesReader

        init(_ router: LaneRouter) { reader = LaneRoutesReader(router) }
    }

    /// Groups the requests by the newest map, and hands over the users who belong to other lanes now.
    private func follow(_ router: LaneRouter, _ users: inout LaneUsers, _ laneConnection: LaneConnection) {
        let isOutdated = buckets.isOutdated(users.map)
        if isOutdated {
            users.map = buckets.current
            queue.withLock { [map = users.map] in $0.regroup(by: map) }
        }
        router.handOver(from: index)
        guard users.reader.refresh() || isOutdated, users.map.isSettled else { return }
        laneConnection.keepReceipts(of: users.reader.routes.buckets(ofLane: index, by: users.map))
    }

    /// Takes the work that the lane executes next; nil if nothing waits.
    func takeWork() -> LaneQueue.Work? {
        queue.withLock { $0.take(atMost: configuration.batchMaximum) }
    }

    /// Records how long the first request has waited. All requests have the same time limit, so its deadline shows when
    /// it arrived. It has waited longest, unless other connections had turns before its own.
    private func record(_ requests: [BatchedRequest]) {
        guard let first = requests.first else { return }
        metrics.batchSizes.record(UInt64(requests.count))
        metrics.queueWaits.record(.now - (first.deadline.instant - configuration.requestTimeout))
    }

    private func checkIdle(_ connection: DatabaseConnection, _ laneConnection: LaneConnection) {
        do throws(PostgresError) {
            _ = try connection.query("select 1", deadline: .now + configuration.requestTimeout)
        } catch {
            laneConnection.drop(error)
        }
    }

    private func expireWaiting(_ laneConnection: LaneConnection, _ trace: LaneTrace?) {
        let now = Deadline(.now)
        let (expired, locked) = queue.withLock { ($0.expire(at: now), $0.expireLocked(at: now)) }
        if !locked.isEmpty { failLocked(locked, trace) }
        guard !expired.isEmpty else { return }
        // While there is a connection, requests wait only for the batches before them.
        let error = laneConnection.connection == nil ? laneConnection.failure : .late
        trace?.expired(expired.count, error)
        mailboxes.deliver(expired.map { Completion(returnAddress: $0, outcome: .failure(error)) })
    }

    private func failLocked(_ locked: [LockedUsers.Waiting], _ trace: LaneTrace?) {
        let completions = locked.map(\.completion)
        metrics.countUnknownOutcomes(locked.count { $0.reason == .unknown }, after: .unknown)
        trace?.failed(locked.map(\.request), completions)
        mailboxes.deliver(completions)
    }

    /// Refuses new requests at once after an outage as long as a request may take. During a shorter one, they wait.
    private func refuseWhenDown(_ laneConnection: LaneConnection) {
        guard let since = laneConnection.downSince, ContinuousClock.now - since > configuration.requestTimeout else {
            return
        }
        let error = laneConnection.failure
        queue.withLock { $0.refuse(with: error) }
    }
}
