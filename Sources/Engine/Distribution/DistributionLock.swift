import Postgres

extension DatabaseConnection {
    private static let longestWait = Duration.seconds(30)

    /// Locks where the users' rows are until the session ends: only one command at a time changes it. It waits for
    /// another one, such as one that was killed: PostgreSQL ends its session within seconds. A statement that waited
    /// would have a snapshot, for which an index that the other command creates concurrently waits in turn.
    func lockDistribution() throws {
        let limit = ContinuousClock.now + DatabaseConnection.longestWait
        while let holder = try query(EmbeddedSQL.lockDistribution, deadline: limit + .seconds(30))
            .firstRow.textOrNil("holder")
        {
            guard ContinuousClock.now < limit else { throw Distribution.Refusal.isRunning(holder) }
            RetriedTransaction.sleep(.milliseconds(100))
        }
    }
}
