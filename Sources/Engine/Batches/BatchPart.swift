/// A batch that is being executed. Its parts share it, because a request that expires in one of them must not be
/// answered by another.
final class PendingBatch {
    fileprivate(set) var batch: Batch
    /// The bucket of all users, by the map of buckets with the revision below.
    fileprivate let bucket: Bucket
    fileprivate let bucketsRevision: Int32

    init(_ batch: Batch, in bucket: Bucket, bucketsRevision: Int32) {
        self.batch = batch
        self.bucket = bucket
        self.bucketsRevision = bucketsRevision
    }

    func part(_ groups: [Batch.UserRequests]) -> BatchPart { BatchPart(groups: groups[...], pending: self) }
}

/// Some users of a batch, whom one statement executes.
struct BatchPart: Expirable {
    let groups: ArraySlice<Batch.UserRequests>
    fileprivate let pending: PendingBatch

    /// The whole batch, as it is now.
    var batch: Batch { pending.batch }
    /// The bucket of all users, by the map of buckets with the revision below.
    var bucket: Bucket { pending.bucket }
    var bucketsRevision: Int32 { pending.bucketsRevision }
    var nextDeadline: Deadline? { pending.batch.nextDeadline(groups) }
    var someExpired: Bool { pending.batch.hasExpired(groups) }
    /// The requests that have not expired.
    var unexpired: [BatchedRequest] { pending.batch.unexpired(groups) }

    func expire(at now: Deadline, _ error: EngineError, into completions: inout [Completion]) {
        pending.batch.expire(groups, at: now, error, into: &completions)
    }

    func fail(_ error: EngineError, into completions: inout [Completion]) {
        pending.batch.fail(groups, error, into: &completions)
    }

    /// Makes a part with some of this part's users.
    func part(_ groups: ArraySlice<Batch.UserRequests>) -> BatchPart { BatchPart(groups: groups, pending: pending) }
    func part(_ groups: [Batch.UserRequests]) -> BatchPart { part(groups[...]) }

    /// Makes a batch of its own, of some of this part's requests.
    func pending(_ batch: Batch) -> BatchPart {
        PendingBatch(batch, in: bucket, bucketsRevision: bucketsRevision).part(batch.groups)
    }

    /// Divides the part by the buckets that the users have in another map.
    func divided(by map: BucketMap) -> [(bucket: Bucket, part: BatchPart)] {
        guard map.revision != bucketsRevision else { return [(bucket, self)] }
        return Dictionary(grouping: groups) { map.bucket(of: $0.user) }.sorted { $0.key < $1.key }
            .map { (bucket: $0.key, part: part($0.value)) }
    }
}

/// What a path leaves unanswered of its part of a batch.
struct UnansweredUsers {
    /// The users whom the next path executes.
    var forNextPath: [Batch.UserRequests] = []
    /// The requests that the lane executes in a new batch. Their statement was not executed, because others in it had
    /// expired, or because users have moved to other buckets.
    var forNewBatch: [BatchedRequest] = []
    /// The requests that had no effect, because another session has locked their users' rows.
    var locked: [BatchedRequest] = []

    static func + (lhs: UnansweredUsers, rhs: UnansweredUsers) -> UnansweredUsers {
        UnansweredUsers(
            forNextPath: lhs.forNextPath + rhs.forNextPath,
            forNewBatch: lhs.forNewBatch + rhs.forNewBatch,
            locked: lhs.locked + rhs.locked
        )
    }

    static func += (lhs: inout UnansweredUsers, rhs: UnansweredUsers) { lhs = lhs + rhs }
}
