import Usage

/// The requests that wait for one lane. No I/O: the lane and the event loops share it under a lock, and act on what it
/// returns outside of the lock.
///
/// Each bucket has a queue of its own (`BucketQueue`), because a batch is about one bucket, and the buckets take turns
/// (`BucketTurns`). A request that would wait too long is refused at once; connections with many waiting requests are
/// refused first. These limits hold for all buckets together. Requests of users whose rows are locked wait apart
/// (`LockedUsers`), and take turns with all others.
struct LaneQueue {
    /// What the lane executes next.
    enum Work: Equatable {
        /// Requests that one statement executes together.
        case batch([BatchedRequest])
        case unbatched(UnbatchedRequest)
        /// Work that may wait only briefly for a lock.
        indirect case apart(Work)
        /// The lane finds out whether the rows of these users are still locked.
        case look([UserID])
    }

    private enum State: Equatable {
        /// Requests are accepted. Can transition to: refusing, closed.
        case open
        /// There has been no connection for longer than a request may wait; requests are refused with this error at
        /// once instead of after their deadline. Can transition to: open, closed.
        case refusing(EngineError)
        /// Nothing is accepted any more; waiting requests are still executed. Can transition to: finished.
        case closed
        /// The lane has executed everything, and its thread ends. Final.
        case finished
    }

    private var map: BucketMap
    /// By the bucket's ordinal.
    private var queues: [BucketQueue]
    private var turns = BucketTurns()
    /// Requests that wait, without those of `lockedUsers`.
    private(set) var count = 0
    private var lockedUsers: LockedUsers
    private var lastWasApart = false
    /// Which lane each unit of users was handed over to; nil for those of this lane. Empty if none ever was.
    private var forwards: [Int?] = []
    /// The units of users that are leaving, and their requests that have arrived since the queue was searched for them.
    private var leaving: (lanes: [Int?], requests: [Request])?
    private var rate: DrainRate
    /// Beyond this many waiting requests, only connections below their share may add more.
    private var countBeforeShares: Int
    private var state = State.open
    /// The lane found no work and sleeps until it is woken.
    private var laneSleeps = false
    private let capacity: Int
    private let batchMaximum: Int
    private let waitMaximumSeconds: Double

    /// - Parameters:
    ///   - capacity: how many requests may wait; further ones are refused as overload.
    ///   - batchMaximum: requests in one batch at most.
    ///   - waitMaximum: requests that would wait longer are refused as overload.
    ///   - requestTimeout: between a request's arrival and its deadline.
    init(
        capacity: Int,
        batchMaximum: Int = 512,
        waitMaximum: Duration = .seconds(60),
        requestTimeout: Duration = .seconds(2),
        map: BucketMap = .undivided
    ) {
        self.capacity = capacity
        self.batchMaximum = batchMaximum
        self.map = map
        queues = Array(repeating: BucketQueue(batchMaximum: batchMaximum), count: map.bucketCount)
        waitMaximumSeconds = waitMaximum / .seconds(1)
        rate = DrainRate(batchMaximum: batchMaximum)
        lockedUsers = LockedUsers(countMaximum: capacity / 4, requestTimeout: requestTimeout)
        countBeforeShares = LaneQueue.countBeforeShares(capacity)
    }

    /// The rest of the capacity is for connections with few waiting requests.
    private static func countBeforeShares(_ capacity: Int) -> Int { capacity - capacity / 128 }

    // MARK: Requests arrive

    enum EnqueueAction: Equatable {
        case none
        case wakeLane
    }

    /// What the caller does once it has released the lock.
    struct Enqueued {
        var action = EnqueueAction.none
        /// Requests that may not wait, and why.
        var refused: ([Request], EngineError)?
        /// Requests of users that belong to another lane by now.
        var forwarded: [Int: [Request]] = [:]
    }

    /// Accepts the requests that may wait.
    mutating func enqueue(_ requests: [Request]) -> Enqueued {
        guard !forwards.isEmpty else { return enqueueOwn(requests) }
        var own: [Request] = []
        var forwarded: [Int: [Request]] = [:]
        for request in requests {
            if let lane = forwards[LaneRoutes.unit(of: request.user)] {
                forwarded[lane, default: []].append(request)
            } else {
                own.append(request)
            }
        }
        var enqueued = enqueueOwn(own)
        enqueued.forwarded = forwarded
        return enqueued
    }

    private mutating func enqueueOwn(_ requests: [Request]) -> Enqueued {
        switch state {
        case .open: break
        case .refusing(let error): return Enqueued(refused: (requests, error))
        case .closed, .finished: return Enqueued(refused: (requests, .closed))
        }
        var refused: [Request] = []
        let allMayWait = count + requests.count <= min(batchMaximum, capacity)
        guard !allMayWait || !map.isSingle || leaving != nil else {
            if queues[0].append(requests), !requests.isEmpty { turns.append(0) }
            count += requests.count
            return Enqueued(action: wakeLane())
        }
        for request in requests {
            if allMayWait || mayWait(request) { append(request) } else { refused.append(request) }
        }
        return Enqueued(action: wakeLane(), refused: refused.isEmpty ? nil : (refused, overloaded))
    }

    private mutating func append(_ request: Request) {
        count += 1
        if leaving != nil, appendLeaving(request) { return }
        let bucket = map.ordinal(of: request.user)
        if queues[bucket].append(request) { turns.append(bucket) }
    }

    /// Apart, because it is rare. False if the request's user does not leave.
    @inline(never)
    private mutating func appendLeaving(_ request: Request) -> Bool {
        guard leaving?.lanes[LaneRoutes.unit(of: request.user)] != nil else { return false }
        leaving?.requests.append(request)
        return true
    }

    private mutating func wakeLane() -> EnqueueAction {
        guard laneSleeps, count > 0 else { return .none }
        laneSleeps = false
        return .wakeLane
    }

    private func mayWait(_ request: Request) -> Bool {
        count < countBeforeShares || (count < capacity && isBelowShare(request))
    }

    /// Whether the request's connection has fewer waiting requests than an equal share of all. The requests of a
    /// connection in each bucket are judged by themselves.
    private func isBelowShare(_ request: Request) -> Bool {
        let own = queues[map.ordinal(of: request.user)].count(ofConnectionOf: request)
        let connections = turns.buckets.reduce(0) { $0 + queues[$1].connectionCount }
        return own < max(1, countBeforeShares / (connections + (own == 0 ? 1 : 0)))
    }

    private var overloaded: EngineError {
        var error = EngineError.overloaded
        error.retryAfterMilliseconds = rate.milliseconds(toExecute: count).map { max(50, min($0, 10_000)) }
        return error
    }

    // MARK: The lane executes them

    /// The next work, or nil, after which the lane sleeps until it is woken, and until `nextLook` at most.
    mutating func take(atMost limit: Int, at now: ContinuousClock.Instant = .now) -> Work? {
        lockedUsers.isEmpty ? takeNext(atMost: limit, at: now) : takeInTurn(atMost: limit, at: now)
    }

    private mutating func takeInTurn(atMost limit: Int, at now: ContinuousClock.Instant) -> Work? {
        if !lastWasApart, let work = takeApart(atMost: limit, at: now) { return work }
        lastWasApart = false
        while let work = takeNext(atMost: limit, at: now) {
            if let work = withoutLockedUsers(work) { return work }
        }
        return takeApart(atMost: limit, at: now)
    }

    private mutating func takeApart(atMost limit: Int, at now: ContinuousClock.Instant) -> Work? {
        guard let work = lockedUsers.take(atMost: limit, at: now) else { return nil }
        (lastWasApart, laneSleeps) = (true, false)
        return work
    }

    /// The work without requests of users whose rows are locked, which wait. Nil if nothing is left.
    private mutating func withoutLockedUsers(_ work: Work) -> Work? {
        switch work {
        case .batch(let requests):
            let batch = requests.filter { lockedUsers.allows(Request($0)) }
            return batch.isEmpty ? nil : .batch(batch)
        case .unbatched(let request): return lockedUsers.allows(Request(request)) ? work : nil
        case .apart, .look: return work
        }
    }

    private mutating func takeNext(atMost limit: Int, at now: ContinuousClock.Instant) -> Work? {
        guard let bucket = turns.takeNext(among: queues), let work = queues[bucket].take(atMost: limit) else {
            laneSleeps = true
            rest()
            return nil
        }
        laneSleeps = false
        let leavesSome = !queues[bucket].isEmpty
        if leavesSome { turns.append(bucket) }
        begin(work, leavesSome: leavesSome, at: now)
        return work
    }

    private mutating func begin(_ work: Work, leavesSome: Bool, at now: ContinuousClock.Instant) {
        let requests = if case .batch(let batch) = work { batch.count } else { 1 }
        count -= requests
        rate.begin(requests, leavesSome: leavesSome, at: now)
        // At least a full batch may wait: smaller batches cost the same each, so fewer requests would be served.
        countBeforeShares = LaneQueue.countBeforeShares(capacity)
        if let executed = rate.executed(withinSeconds: waitMaximumSeconds) {
            countBeforeShares = min(countBeforeShares, max(batchMaximum, executed))
        }
    }

    /// The lane is idle or disconnected: its rate is unknown from now on.
    mutating func rest() {
        rate.reset()
        countBeforeShares = LaneQueue.countBeforeShares(capacity)
    }

    // MARK: Locked users

    /// Requests that had no effect, because a session has locked their users' rows. They wait, and so do later ones.
    ///
    /// - Parameter reason: the answer to those whose deadline passes.
    mutating func addLocked(_ requests: [Request], _ reason: EngineError, at now: ContinuousClock.Instant = .now) {
        lockedUsers.add(requests, reason, at: now)
    }

    mutating func note(_ seen: [UserID], stillLocked: Set<UserID>, at now: ContinuousClock.Instant = .now) {
        lockedUsers.note(seen, stillLocked: stillLocked, at: now)
    }

    /// When a lane without other work looks at locked rows, or a request's deadline passes; nil if none wait.
    var nextLook: ContinuousClock.Instant? {
        [lockedUsers.nextInstant, lockedUsers.nextDeadline?.instant].compactMap(\.self).min()
    }

    /// How many requests of locked users wait.
    var lockedCount: Int { lockedUsers.count }

    // MARK: Deadlines

    /// Removes the requests whose deadline has passed, and returns where their outcomes are delivered.
    mutating func expire(at now: Deadline) -> [ReturnAddress] {
        var expired: [ReturnAddress] = []
        for bucket in Array(turns.buckets) {
            queues[bucket].expire(at: now, into: &expired)
            if queues[bucket].isEmpty { turns.remove(bucket) }
        }
        count -= expired.count
        return expired
    }

    /// As `expire`, of requests that wait for a lock, with those that may not.
    mutating func expireLocked(at now: Deadline) -> [LockedUsers.Waiting] {
        lockedUsers.isEmpty ? [] : lockedUsers.expire(at: now)
    }

    /// The earliest deadline of a waiting request.
    var nextDeadline: Deadline? {
        let deadline = turns.buckets.compactMap { queues[$0].nextDeadline }.min()
        return lockedUsers.isEmpty ? deadline : [deadline, lockedUsers.nextDeadline].compactMap(\.self).min()
    }

    // MARK: Users move

    /// Puts the waiting requests into the buckets of a new map.
    mutating func regroup(by newest: BucketMap) {
        guard newest != map else { return }
        let waiting = removeAll()
        map = newest
        queues = Array(repeating: BucketQueue(batchMaximum: batchMaximum), count: map.bucketCount)
        for request in waiting { append(request) }
    }

    private mutating func removeAll() -> [Request] {
        defer {
            turns.removeAll()
            count = 0
        }
        return turns.buckets.flatMap { queues[$0].removeAll() }
    }

    enum HandOver: Equatable {
        /// These go to their new lanes first.
        case waiting([Request])
        /// None waits any more. The lane forwards from now on.
        case done
        /// The lane executes what it has, and takes nothing new.
        case closed
    }

    /// Takes the waiting requests of units of users that leave the lane. The first call searches the queues of their
    /// buckets; those that arrive from then on are kept apart, so that further calls cost as much as what they return.
    /// The caller calls it until it returns `done` or `closed`, or calls `keep`.
    ///
    /// - Parameter lanes: where each unit goes; nil for those that stay. The same with each call.
    mutating func handOver(to lanes: [Int?]) -> HandOver {
        guard isOpen else {
            keep([])
            return .closed
        }
        let requests = leaving?.requests ?? removeLeaving(to: lanes)
        count -= requests.count
        guard requests.isEmpty else {
            leaving = (lanes, [])
            return .waiting(requests)
        }
        leaving = nil
        if forwards.isEmpty { forwards = Array(repeating: nil, count: LaneRoutes.units) }
        for (unit, lane) in lanes.enumerated() where lane != nil { forwards[unit] = lane }
        return .done
    }

    private mutating func removeLeaving(to lanes: [Int?]) -> [Request] {
        // Those of locked users have arrived before the others.
        var requests = lockedUsers.remove { lanes[LaneRoutes.unit(of: $0)] != nil }
        count += requests.count
        let buckets = Set(lanes.indices.filter { lanes[$0] != nil }.flatMap { map.ordinals(ofUnit: $0) })
        for bucket in Array(turns.buckets) where buckets.contains(bucket) {
            requests += queues[bucket].remove { lanes[LaneRoutes.unit(of: $0.user)] != nil }
            if queues[bucket].isEmpty { turns.remove(bucket) }
        }
        return requests
    }

    /// The requests of these units stay in the lane after all: those that were passed on in vain, and those that have
    /// arrived since.
    mutating func keep(_ requests: [Request]) {
        let kept = requests + (leaving?.requests ?? [])
        count -= leaving?.requests.count ?? 0
        leaving = nil
        for request in kept { append(request) }
    }

    /// These units of users come back, or come for the first time. Not before the lane that had them forwards requests:
    /// one that comes late, by routes of long ago, would overtake those that still wait there.
    mutating func expect(_ units: [Int]) {
        guard !forwards.isEmpty else { return }
        for unit in units { forwards[unit] = nil }
    }

    /// Takes over requests that another lane has accepted; nil if this lane's thread has ended.
    mutating func takeOver(_ requests: [Request]) -> EnqueueAction? {
        guard state != .finished else { return nil }
        for request in requests { append(request) }
        return wakeLane()
    }

    // MARK: State

    /// - Parameter error: the answer until `reopen`; replaces an earlier one.
    mutating func refuse(with error: EngineError) {
        if isOpen { state = .refusing(error) }
    }

    mutating func reopen() {
        if isOpen { state = .open }
    }

    private var isOpen: Bool { state != .closed && state != .finished }

    mutating func close() -> EnqueueAction {
        if isOpen { state = .closed }
        defer { laneSleeps = false }
        return laneSleeps ? .wakeLane : .none
    }

    /// Whether it is closed, and every accepted request has been taken. Nothing can be added from then on.
    mutating func finishIfDrained() -> Bool {
        if state == .closed, count == 0, !lockedUsers.hasRequests { state = .finished }
        return state == .finished
    }
}
