import Logging
import Postgres
import Usage

/// Finds out whose rows another session has locked, such as an operator's psql.
struct RowLocks {
    let laneConnection: LaneConnection
    let logger: Logger

    /// The users with a locked row, found without waiting for the lock; nil if the database doesn't answer.
    func locked(among users: [UserID]) -> Set<UserID>? {
        if laneConnection.waitsBriefly { return find(users) }
        var locked: Set<UserID>?
        // The wait is brief, because another session may have locked the whole table.
        laneConnection.waitBriefly { locked = find(users) }
        return locked
    }

    private func find(_ users: [UserID]) -> Set<UserID>? {
        let map = laneConnection.buckets
        var locked: Set<UserID> = []
        for (bucket, users) in Dictionary(grouping: users, by: { map.bucket(of: $0) }) {
            guard let found = self.locked(among: users, in: bucket) else { return nil }
            locked.formUnion(found)
        }
        return locked
    }

    private func locked(among users: [UserID], in bucket: Bucket) -> [UserID]? {
        guard let connection = laneConnection.connection else { return nil }
        var parameters = Parameters()
        parameters.append(int16: bucket)
        parameters.appendUUIDs(count: users.count) { (users[$0].high, users[$0].low) }
        do throws(PostgresError) {
            // The statement waits for no row's lock, so a slow answer means that the database is in trouble.
            let deadline = ContinuousClock.now + .milliseconds(250)
            let result = try connection.query(EmbeddedSQL.readLockedUsers, parameters, deadline: deadline)
            let ordinal = try result.column("ordinal")
            return (0..<result.rowCount).map { users[result.ordinal($0, ordinal)] }
        } catch {
            logger.debug("locked rows could not be found", metadata: ["error": "\(error)"])
            if !connection.isUsable { laneConnection.drop(error) }
            return nil
        }
    }
}
