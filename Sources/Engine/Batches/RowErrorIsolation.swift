import Postgres

/// Isolates the users who cause an error: when the database refuses the statement of a batch, it fails their requests
/// and executes the others again. One bad row must not fail the other rows of a batch.
struct RowErrorIsolation {
    let errors: DatabaseErrors
    private let laneConnection: LaneConnection
    private let delivery: OutcomeDelivery
    private let locks: RowLocks

    init(sender: ExactlyOnceSender, errors: DatabaseErrors, locks: RowLocks) {
        self.errors = errors
        self.locks = locks
        laneConnection = sender.laneConnection
        delivery = sender.delivery
    }

    typealias ExecuteAgain = (BatchPart) -> UnansweredUsers

    /// Executes the users again who did not cause the error. Returns what that leaves, and requests of locked users.
    func isolate(_ part: BatchPart, _ error: PostgresError, _ executeAgain: ExecuteAgain) -> UnansweredUsers {
        if error.kind == .server(.lockNotAvailable) { delivery.metrics.add(1, to: .lockTimeouts) }
        switch error.kind {
        case .server(.lockNotAvailable) where laneConnection.waitsBriefly:
            guard part.groups.count > 1, laneConnection.mayWaitAgain() else {
                return UnansweredUsers(locked: part.unexpired)
            }
            return executeHalves(part, executeAgain)
        case .server(.lockNotAvailable), .server(.queryCanceled):
            return isolateLocked(part, error, executeAgain)
        default:
            return isolateRead(part, error, executeAgain)
        }
    }

    /// Isolates after an error of a statement that waits for no row's lock; otherwise as `isolate`.
    func isolateRead(_ part: BatchPart, _ error: PostgresError, _ executeAgain: ExecuteAgain) -> UnansweredUsers {
        let groups = part.groups
        switch error.kind {
        case .server(.outdatedBuckets):
            // The lane groups the requests by the new map.
            laneConnection.refreshBuckets(seen: part.bucketsRevision)
            return UnansweredUsers(forNewBatch: part.unexpired)
        case .server where groups.count > 1 && (error.isAboutOneRow || error.sqlState?.isClass("40") == true):
            return executeHalves(part, executeAgain)
        default:
            delivery.fail(part, errors.engineError(for: error))
            return UnansweredUsers()
        }
    }

    private func executeHalves(_ part: BatchPart, _ executeAgain: ExecuteAgain) -> UnansweredUsers {
        let groups = part.groups
        let middle = groups.startIndex + groups.count / 2
        return executeAgain(part.part(groups[..<middle])) + executeAgain(part.part(groups[middle...]))
    }

    /// Another session, such as an operator's psql, keeps rows locked for longer than a batch may wait. Leaves their
    /// users, and executes the others again.
    private func isolateLocked(
        _ part: BatchPart,
        _ error: PostgresError,
        _ executeAgain: ExecuteAgain
    ) -> UnansweredUsers {
        guard let locked = locks.locked(among: part.groups.map(\.user)),
            !locked.isEmpty || error.kind == .server(.lockNotAvailable)
        else {
            // No lock explains the error: the database is in trouble, or slow.
            delivery.fail(part, errors.engineError(for: error))
            return UnansweredUsers()
        }
        guard !locked.isEmpty else {
            // Something is locked that `RowLocks` doesn't see: a row that is being inserted, a plan, or the whole
            // table.
            guard part.groups.count > 1 else { return UnansweredUsers(locked: part.unexpired) }
            var unanswered = UnansweredUsers()
            laneConnection.waitBriefly { unanswered = executeHalves(part, executeAgain) }
            return unanswered
        }
        let free = part.groups.filter { !locked.contains($0.user) }
        var unanswered = free.isEmpty ? UnansweredUsers() : executeAgain(part.part(free))
        unanswered.locked += part.part(part.groups.filter { locked.contains($0.user) }).unexpired
        return unanswered
    }
}
