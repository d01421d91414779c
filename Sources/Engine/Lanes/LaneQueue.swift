import Usage

/// The requests that wait for one lane. It does no I/O: the lane and the event loops share it under a lock, and act on
/// what it returns after they release the lock.
///
/// Each bucket has a queue of its own (`BucketQueue`), because a batch is about one bucket, and the buckets take turns
/// (`BucketTurns`). A request that would wait too long is refused at once; connections with many waiting requests are
/// refused first. These limits hold for all buckets together. Requests of users whose rows are locked wait apart
/// (`LockedUsers`), and take turns with all others.
struct LaneQueue {
    /// The work that the lane executes next.
    enum Work: Equatable {
        /// Requests that one statement executes together.
        case batch([BatchedRequest])
        case unbatched(UnbatchedRequest)
        /// Work whose statements wait only briefly for a lock.
        indirect case apart(Work)
        /// The lane finds out whether the rows of these users are still locked.
        case look([UserID])
    }

    private enum State: Equatable {
        /// Requests are accepted. Can transition to: refusing, closed.
        case open
        /// There has been no connection for longer than a request may wait. Requests are refused with this error at
        /// once instead of after their deadline. Can transition to: open, closed.
        case refusing(EngineError)
        /// Requests are refused; waiting ones are still executed. Can transition to: finished.
        case closed
        /// The lane has executed everything, and its thread ends. Final.
        case finished
    }

    private var map: BucketMap
    /// The queue of each bucket, by the bucket's ordinal.
    private var queues: [BucketQueue]
    private var turns = BucketTurns()
    /// The number of waiting requests, without those of `lockedUsers`.
    private(set) var count = 0
    private var lockedUsers: LockedUsers
    private var lastWasApart = false
    /// The lane that each unit of users was handed over to; nil for a unit of this lane. Empty if there never was one.
    private var forwards: [Int?] = []
    /// The units of users that are leaving, and their requests that have arrived since their queues were searched.
    private var leaving: (lanes: [Int?], requests: [Request])?
    private var rate: DrainRate
    /// Beyond this many waiting requests, only connections below their share may add more.
    private var countBeforeShares: Int
    private var state = State.open
    /// Whether the lane found no work, and sleeps until it is woken.
    private var laneSleeps = false
    private let capacity: Int
    private let batchMaximum: Int
    private let waitMaximumSeconds: Double

    /// - Parameters:
    ///   - capacity: the most requests that may wait; further ones are refused as overload.
    ///   - batchMaximum: the most requests in one batch.
    ///   - waitMaximum: the longest wait; a request that would wait longer is refused as overload.
    ///   - requestTimeout: the time between a request's arrival and its deadline.
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

    /// The count from which only connections below their share may add requests. The rest of the capacity is for them.
    private static func countBeforeShares(_ capacity: Int) -> Int { capacity - capacity / 128 }

    // MARK: Requests arrive

    enum EnqueueAction: Equatable {
        case none
        case wakeLane
    }

    /// What the caller has to do after it releases the lock.
    struct Enqueued {
        var action = EnqueueAction.none
        /// The requests that may not wait, and the reason.
        var refused: ([Request], EngineError)?
        /// The requests of users who belong to another lane by now, by that lane.
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

    /// Keeps the request of a user who leaves the lane; returns false for others. Not inlined, because it is rare.
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

    /// Whether the request's connection has fewer waiting requests than an equal share of all. A connection's requests
    /// in different buckets are counted separately.
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

    /// Takes the next work. After nil, the lane sleeps until it is woken, at most until `nextLook`.
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

    /// Removes the requests of users whose rows are locked from the work, and lets them wait; nil if nothing is left.
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
        // At least a full batch may wait: a smaller batch takes as long, so fewer requests would be served.
        countBeforeShares = LaneQueue.countBeforeShares(capacity)
        if let executed = rate.executed(withinSeconds: waitMaximumSeconds) {
            countBeforeShares = min(countBeforeShares, max(batchMaximum, executed))
        }
    }

    /// Forgets the rate, because the lane is idle or disconnected.
    mutating func rest() {
        rate.reset()
        countBeforeShares = LaneQueue.countBeforeShares(capacity)
    }

    // MARK: Locked users

    /// Lets requests wait that had no effect, because a session has locked their users' rows. Later ones of these users
    /// wait, too.
    ///
    /// - Parameter reason: the answer to requests whose deadline passes.
    mutating func addLocked(_ requests: [Request], _ reason: EngineError, at now: ContinuousClock.Instant = .now) {
        lockedUsers.add(requests, reason, at: now)
    }

    mutating func note(_ seen: [UserID], stillLocked: Set<UserID>, at now: ContinuousClock.Instant = .now) {
        lockedUsers.note(seen, stillLocked: stillLocked, at: now)
    }

    /// When a lane without other work looks at locked rows, or a request's deadline passes; nil if none waits.
    var nextLook: ContinuousClock.Instant? {
        if lockedUsers.isEmpty { return nil }
        return [lockedUsers.nextInstant, lockedUsers.nextDeadline?.instant].compactMap(\.self).min()
    }

    /// The number of requests that wait for locked rows.
    var lockedCount: Int { lockedUsers.count }

    // MARK: Deadlines

    /// Removes the requests whose deadline has passed.
    ///
    /// - Returns: the addresses to which their outcomes are delivered.
    mutating func expire(at now: Deadline) -> [ReturnAddress] {
        var expired: [ReturnAddress] = []
        guard let next = nextDeadlineOfBuckets, next <= now else { return expired }
        for bucket in Array(turns.buckets) {
            queues[bucket].expire(at: now, into: &expired)
            if queues[bucket].isEmpty { turns.remove(bucket) }
        }
        count -= expired.count
        return expired
    }

    /// Removes the requests whose deadline has passed among those that wait for a lock, and those that may not wait.
    mutating func expireLocked(at now: Deadline) -> [LockedUsers.Waiting] {
        lockedUsers.isEmpty ? [] : lockedUsers.expire(at: now)
    }

    /// The earliest deadline of a waiting request.
    var nextDeadline: Deadline? {
        let deadline = nextDeadlineOfBuckets
        return lockedUsers.isEmpty ? deadline : [deadline, lockedUsers.nextDeadline].compactMap(\.self).min()
    }

    private var nextDeadlineOfBuckets: Deadline? {
        var next: Deadline?
        for bucket in turns.buckets {
            guard let deadline = queues[bucket].nextDeadline else { continue }
            next = next.map { min($0, deadline) } ?? deadline
        }
        return next
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
        /// Waiting requests, which go to their new lanes first.
        case waiting([Request])
        /// No request waits any more. The lane forwards new ones from now on.
        case done
        /// The lane is closed: it executes what it has, and takes nothing new.
        case closed
    }

    /// Takes the waiting requests of units of users that leave the lane. The first call searches the queues of their
    /// buckets. Requests that arrive later are kept apart, so that a further call costs as much as what it returns.
    /// Call this until it returns `done` or `closed`, or call `keep`.
    ///
    /// - Parameter lanes: the lane to which each unit goes; nil for a unit that stays. The same with each call.
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
        // Requests of locked users have arrived before the others.
        var requests = lockedUsers.remove { lanes[LaneRoutes.unit(of: $0)] != nil }
        count += requests.count
        let buckets = Set(lanes.indices.filter { lanes[$0] != nil }.flatMap { map.ordinals(ofUnit: $0) })
        for bucket in Array(turns.buckets) where buckets.contains(bucket) {
            requests += queues[bucket].remove { lanes[LaneRoutes.unit(of: $0.user)] != nil }
            if queues[bucket].isEmpty { turns.remove(bucket) }
        }
        return requests
    }

    /// Keeps the units of users that were to leave, with these requests, which were passed on in vain, and those that
    /// have arrived since.
    mutating func keep(_ requests: [Request]) {
        let kept = requests + (leaving?.requests ?? [])
        count -= leaving?.requests.count ?? 0
        leaving = nil
        for request in kept { append(request) }
    }

    /// Accepts these units of users from now on. Call it once the lane that had them forwards requests: a request that
    /// comes late, by earlier routes, would else overtake those that still wait there.
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

    /// - Parameter error: the answer until `reopen`; it replaces an earlier one.
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

    /// Finishes if the queue is closed and every accepted request has been taken. Nothing can be added from then on.
    mutating func finishIfDrained() -> Bool {
        if state == .closed, count == 0, !lockedUsers.hasRequests { state = .finished }
        return state == .finished
    }
}
