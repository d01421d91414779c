import Logging
import Postgres
import Usage

/// One bad row must not fail the other rows of a batch: when the database refuses a statement, this finds the users
/// that caused the error and executes the others again.
extension BatchExecutor {
    typealias CarryAgain = (inout BatchExecutor, ArraySlice<Batch.Group>, inout Batch) -> [Batch.Group]

    /// Returns the result of executing the groups again that did not cause the error.
    mutating func isolate(
        _ groups: ArraySlice<Batch.Group>,
        _ error: PostgresError,
        of batch: inout Batch,
        deliver: Deliver,
        _ carryAgain: CarryAgain
    ) -> [Batch.Group] {
        switch error.kind {
        case .server(.lockNotAvailable) where groups.count > 1, .server(.queryCanceled) where groups.count > 1:
            return setLockedAside(groups, of: &batch, deliver: deliver, carryAgain)
        case .server where groups.count > 1 && error.isAboutOneRow:
            let middle = groups.startIndex + groups.count / 2
            return carryAgain(&self, groups[..<middle], &batch) + carryAgain(&self, groups[middle...], &batch)
        default:
            fail(groups, failure(for: error), of: batch, deliver: deliver)
            return []
        }
    }

    /// Another session, such as an operator's psql, holds rows locked for longer than a batch may wait. Finds these
    /// rows without waiting, fails their users and executes the others again.
    private mutating func setLockedAside(
        _ groups: ArraySlice<Batch.Group>,
        of batch: inout Batch,
        deliver: Deliver,
        _ carryAgain: CarryAgain
    ) -> [Batch.Group] {
        var parameters = Parameters()
        let first = groups.startIndex
        parameters.appendUUIDs(count: groups.count) {
            let user = groups[first + $0].user
            return (user.high, user.low)
        }
        var isLocked = Array(repeating: false, count: groups.count)
        do throws(PostgresError) {
            guard let connection = link.connection else { throw PostgresError(.connectionLost, "no connection") }
            // It waits for no lock, so a slow answer means that the database is in trouble.
            let locked = try connection.query(EmbeddedSQL.readLockedUsers, parameters, deadline: .now + .milliseconds(250))
            for row in 0..<locked.rowCount { isLocked[locked.ordinal(row, 0)] = true }
        } catch {
            logger.debug("locked rows could not be found", metadata: ["error": "\(error)"])
            if let connection = link.connection, !connection.isUsable { link.drop(error) }
        }
        let free = zip(groups, isLocked).compactMap { $1 ? nil : $0 }
        let blocked = zip(groups, isLocked).compactMap { $1 ? $0 : nil }
        guard !blocked.isEmpty else {
            // No usage row is locked, but a plan or the whole table, which concerns all groups.
            fail(groups, .busy, of: batch, deliver: deliver)
            return []
        }
        fail(blocked[...], .busy, of: batch, deliver: deliver)
        return free.isEmpty ? [] : carryAgain(&self, free[...], &batch)
    }

    func fail(_ groups: ArraySlice<Batch.Group>, _ error: EngineError, of batch: Batch, deliver: Deliver) {
        var completions: [Completion] = []
        batch.fail(groups, error, into: &completions)
        metrics.countFailures(completions.count, error)
        deliver(completions)
    }

    /// Answers the requests of a committed batch whose counts cannot be read. A client that sends a message again with its
    /// key gets the message's own answer.
    func failUncertain(
        _ groups: ArraySlice<Batch.Group>,
        _ error: PostgresError,
        of batch: Batch,
        deliver: Deliver
    ) {
        invalidValues.record(error, as: "what a batch has counted cannot be read")
        fail(groups, .unknown, of: batch, deliver: deliver)
    }

    /// The error to answer if the request took effect before the error.
    func failureAfterwards(for error: PostgresError) -> EngineError {
        let failure = failure(for: error)
        return error.isAboutInvalidValue ? .invalidValueAfterwards(error) : failure
    }

    func failure(for refusal: PostgresError) -> EngineError {
        let error = link.connection?.explaining(refusal, deadline: .now + .milliseconds(250)) ?? refusal
        switch error.kind {
        case .server(.unknownUser):
            return EngineError(.notFound, error.message)
        case .server(.lockNotAvailable), .server(.queryCanceled):
            return .busy
        case .server(.invalidStoredValue):
            invalidValues.record(error)
            return .invalidValue(error)
        case .server(let state) where state.isClass("53"):
            logger.error("database is out of resources", metadata: ["error": "\(error)"])
            return EngineError(.unavailable, "the database is out of resources; nothing was counted, try again later")
        default:
            let reference = String(UInt32.random(in: 0 ... .max), radix: 16)
            logger.error("statement refused", metadata: ["error": "\(error)", "error.reference": "\(reference)"])
            return EngineError(
                .internal,
                "the database refused the request and nothing was counted; see the log for reference \(reference)"
            )
        }
    }
}
