import Logging
import Postgres
import Usage

/// One bad row must not fail the other rows of a batch: when the database refuses a statement, this finds the users
/// that caused the error and executes the others again.
struct RowErrorIsolation {
    let errors: DatabaseErrors
    private let laneConnection: LaneConnection
    private let delivery: OutcomeDelivery
    private let logger: Logger

    init(sender: ExactlyOnceSender, errors: DatabaseErrors) {
        self.errors = errors
        laneConnection = sender.laneConnection
        delivery = sender.delivery
        logger = sender.logger
    }

    typealias ExecuteAgain = (BatchPart) -> Remainder

    /// Returns what `executeAgain` leaves of the users that did not cause the error.
    func isolate(_ part: BatchPart, _ error: PostgresError, _ executeAgain: ExecuteAgain) -> Remainder {
        let groups = part.groups
        switch error.kind {
        case .server(.outdatedBuckets):
            // The lane groups the requests anew.
            laneConnection.refreshBuckets(seen: part.bucketsRevision)
            return Remainder(forNewBatch: part.unexpired)
        case .server(.lockNotAvailable) where groups.count > 1, .server(.queryCanceled) where groups.count > 1:
            return isolateLocked(part, executeAgain)
        case .server where groups.count > 1 && (error.isAboutOneRow || error.sqlState?.isClass("40") == true):
            let middle = groups.startIndex + groups.count / 2
            return executeAgain(part.part(groups[..<middle])) + executeAgain(part.part(groups[middle...]))
        default:
            delivery.fail(part, errors.engineError(for: error))
            return Remainder()
        }
    }

    /// Another session, such as an operator's psql, holds rows locked for longer than a batch may wait. Finds these
    /// rows without waiting, fails their users and executes the others again.
    private func isolateLocked(_ part: BatchPart, _ executeAgain: ExecuteAgain) -> Remainder {
        let groups = part.groups
        var parameters = Parameters()
        parameters.append(int16: part.bucket)
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
            // No usage row is locked, but a plan or the whole table, which concerns all users.
            delivery.fail(part, .busy)
            return Remainder()
        }
        delivery.fail(part.part(locked), .busy)
        return free.isEmpty ? Remainder() : executeAgain(part.part(free))
    }
}
