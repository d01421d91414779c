import Usage

/// Executes a lane's batches: it chooses the path of each user, and gives the next path what one leaves unanswered.
///
/// - The **fast path** counts with one statement that touches one row per user and joins nothing (`CountPath`).
/// - The **read path** is for users with nothing to count, or with nothing left when last seen (`ReadPath`).
/// - The **slow path** is for users without a usable row, for repeated keys, and for more than two keys of one user
///   (`SlowPath`).
struct BatchExecutor {
    private let laneConnection: LaneConnection
    private let countPath: CountPath
    private let readPath: ReadPath
    private let slowPath: SlowPath
    private var users: UserCache
    /// The requests of the present batch that had no effect, because another session has locked their users' rows.
    private var locked: [BatchedRequest] = []

    private enum Path {
        case count, read, slow
    }

    init(sender: ExactlyOnceSender, errors: DatabaseErrors, locks: RowLocks, configuration: EngineConfiguration) {
        laneConnection = sender.laneConnection
        let isolation = RowErrorIsolation(sender: sender, errors: errors, locks: locks)
        readPath = ReadPath(sender: sender, isolation: isolation, configuration: configuration)
        countPath = CountPath(sender: sender, isolation: isolation, readPath: readPath)
        slowPath = SlowPath(
            sender: sender,
            isolation: isolation,
            countPath: countPath,
            readPath: readPath,
            configuration: configuration
        )
        users = UserCache(
            today: CivilDate(year: 1970, month: 1, day: 1),
            capacity: UserCache.capacityOfAllLanes / configuration.lanes
        )
    }

    /// Executes the requests, in one batch for each bucket, and answers them.
    ///
    /// - Returns: the requests that are not answered and had no effect, because another session has locked their users'
    ///   rows. Those of one user are in their order.
    mutating func execute(_ requests: [BatchedRequest]) -> [BatchedRequest] {
        executeAll(requests)
        guard !locked.isEmpty else { return [] }
        defer { locked = [] }
        return locked
    }

    private mutating func executeAll(_ requests: [BatchedRequest]) {
        if let now = laneConnection.takeObservedInstant() { users.observe(now) }
        let map = laneConnection.buckets
        for (bucket, requests) in map.divide(requests) {
            execute(PendingBatch(Batch(requests), in: bucket, bucketsRevision: map.revision))
        }
    }

    /// Executes one batch. Each path delivers its answers before the next, slower one begins.
    private mutating func execute(_ pending: PendingBatch) {
        var toCount: [Batch.UserRequests] = []
        var toRead: [Batch.UserRequests] = []
        var toDecide: [Batch.UserRequests] = []
        for group in pending.batch.groups {
            switch path(of: group, in: pending.batch) {
            case .count: toCount.append(group)
            case .read: toRead.append(group)
            case .slow: toDecide.append(group)
            }
        }
        if !toCount.isEmpty {
            let unanswered = countPath.count(pending.part(toCount), &users)
            toDecide += unanswered.forNextPath
            executeNewBatches(unanswered)
        }
        if !toRead.isEmpty {
            let unanswered = readPath.read(pending.part(toRead), &users)
            toDecide += unanswered.forNextPath
            executeNewBatches(unanswered)
        }
        if !toDecide.isEmpty {
            toDecide.sort { $0.user < $1.user }
            executeNewBatches(slowPath.decide(pending.part(toDecide), &users))
        }
        executePutOff(pending.batch.putOff)
    }

    /// Executes the requests of users with two keys, unless the earlier requests of their users wait for a locked row.
    /// All requests have the same time, so those whose deadline passes while the first batch waits expire soon after.
    private mutating func executePutOff(_ requests: [BatchedRequest]) {
        guard !requests.isEmpty else { return }
        let waiting = Set(locked.map(\.user))
        locked += requests.filter { waiting.contains($0.user) }
        let next = requests.filter { !waiting.contains($0.user) }
        if !next.isEmpty { executeAll(next) }
    }

    private func path(of group: Batch.UserRequests, in batch: Batch) -> Path {
        if group.needsSlowPath { return .slow }
        if !group.changesUsage { return .read }
        let isExhausted =
            users.isExhausted(group.user)
            || group.hasParts && users.hasExhaustedParts(of: group.user, in: batch.requests[group.range])
        if !isExhausted || group.onlySettlesHolds { return .count }
        // The key may have been used while messages were left. The answer is that of its first use then.
        return group.keyed != nil ? .slow : .read
    }

    private mutating func executeNewBatches(_ unanswered: UnansweredUsers) {
        if !unanswered.locked.isEmpty { locked += unanswered.locked }
        if !unanswered.forNewBatch.isEmpty { executeAll(unanswered.forNewBatch) }
    }
}
