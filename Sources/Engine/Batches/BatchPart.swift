/// A batch that is being executed. Its parts share it, because a request that expires in one of them must not be
/// answered by another.
final class PendingBatch {
    fileprivate(set) var batch: Batch
    /// Of all its users, in the map with this revision.
    fileprivate let bucket: Bucket
    fileprivate let bucketsRevision: Int32

    init(_ batch: Batch, in bucket: Bucket, bucketsRevision: Int32) {
        self.batch = batch
        self.bucket = bucket
        self.bucketsRevision = bucketsRevision
    }

    func part(_ groups: [Batch.UserRequests]) -> BatchPart { BatchPart(groups: groups[...], pending: self) }
}

/// The users of a batch that one statement executes.
struct BatchPart: Expirable {
    let groups: ArraySlice<Batch.UserRequests>
    fileprivate let pending: PendingBatch

    /// All of it, as it is now.
    var batch: Batch { pending.batch }
    /// Of all users, in the map with this revision.
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

    /// Some of this part's users.
    func part(_ groups: ArraySlice<Batch.UserRequests>) -> BatchPart { BatchPart(groups: groups, pending: pending) }
    func part(_ groups: [Batch.UserRequests]) -> BatchPart { part(groups[...]) }

    /// Another batch, of some of this one's requests.
    func pending(_ batch: Batch) -> BatchPart {
        PendingBatch(batch, in: bucket, bucketsRevision: bucketsRevision).part(batch.groups)
    }

    /// Its parts by the buckets of a map.
    func divided(by map: BucketMap) -> [(bucket: Bucket, part: BatchPart)] {
        guard map.revision != bucketsRevision else { return [(bucket, self)] }
        return Dictionary(grouping: groups) { map.bucket(of: $0.user) }.sorted { $0.key < $1.key }
            .map { (bucket: $0.key, part: part($0.value)) }
    }
}

/// What a path leaves of its part of a batch.
struct UnansweredUsers {
    /// The users that the next path is to execute.
    var forNextPath: [Batch.UserRequests] = []
    /// Requests that are to be executed as batches of their own: their statement was not executed, because others in it
    /// had expired, or because users have moved to other buckets.
    var forNewBatch: [BatchedRequest] = []
    /// Requests that had no effect, because another session has locked their users' rows.
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
