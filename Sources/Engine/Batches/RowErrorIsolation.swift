import Logging
import Postgres
import Usage

/// One bad row must not fail the other rows of a batch: when the database refuses a statement, this finds the users
/// that caused the error and executes the others again.
extension BatchExecutor {
    typealias ExecuteAgain = (inout BatchExecutor, ArraySlice<Batch.UserRequests>, inout Batch) -> [Batch.UserRequests]

    /// Returns the groups that `executeAgain` returned for the users that did not cause the error.
    mutating func isolate(
        _ groups: ArraySlice<Batch.UserRequests>,
        _ error: PostgresError,
        of batch: inout Batch,
        deliver: Deliver,
        _ executeAgain: ExecuteAgain
    ) -> [Batch.UserRequests] {
        switch error.kind {
        case .server(.lockNotAvailable) where groups.count > 1, .server(.queryCanceled) where groups.count > 1:
            return isolateLocked(groups, of: &batch, deliver: deliver, executeAgain)
        case .server where groups.count > 1 && (error.isAboutOneRow || error.sqlState?.isClass("40") == true):
            let middle = groups.startIndex + groups.count / 2
            return executeAgain(&self, groups[..<middle], &batch) + executeAgain(&self, groups[middle...], &batch)
        default:
            batch.fail(groups, errors.engineError(for: error), metrics, deliver: deliver)
            return []
        }
    }

    /// Another session, such as an operator's psql, holds rows locked for longer than a batch may wait. Finds these
    /// rows without waiting, fails their users and executes the others again.
    private mutating func isolateLocked(
        _ groups: ArraySlice<Batch.UserRequests>,
        of batch: inout Batch,
        deliver: Deliver,
        _ executeAgain: ExecuteAgain
    ) -> [Batch.UserRequests] {
        var parameters = Parameters()
        parameters.append(usersOf: groups)
        var isLocked = Array(repeating: false, count: groups.count)
        do throws(PostgresError) {
            guard let connection = laneConnection.connection else {
                throw PostgresError(.connectionLost, "no connection")
            }
            // It waits for no lock, so a slow answer means that the database is in trouble.
            let deadline = ContinuousClock.now + .milliseconds(250)
            let locked = try connection.query(EmbeddedSQL.readLockedUsers, parameters, deadline: deadline)
            let ordinal = try locked.column("ordinal")
            for row in 0..<locked.rowCount { isLocked[locked.ordinal(row, ordinal)] = true }
        } catch {
            logger.debug("locked rows could not be found", metadata: ["error": "\(error)"])
            if let connection = laneConnection.connection, !connection.isUsable { laneConnection.drop(error) }
        }
        let free = zip(groups, isLocked).compactMap { $1 ? nil : $0 }
        let locked = zip(groups, isLocked).compactMap { $1 ? $0 : nil }
        guard !locked.isEmpty else {
            // No usage row is locked, but a plan or the whole table, which concerns all groups.
            batch.fail(groups, .busy, metrics, deliver: deliver)
            return []
        }
        batch.fail(locked, .busy, metrics, deliver: deliver)
        return free.isEmpty ? [] : executeAgain(&self, free[...], &batch)
    }

    /// Answers the requests of a committed batch whose counts cannot be read. A client that sends a message again with
    /// its key gets the message's own answer.
    func failUncertain(
        _ groups: ArraySlice<Batch.UserRequests>,
        _ error: PostgresError,
        of batch: Batch,
        deliver: Deliver
    ) {
        invalidValues.record(error, as: "what a batch has counted cannot be read")
        batch.fail(groups, .unknown, metrics, deliver: deliver)
    }
}
