import CLibPQ

extension Connection {
    /// Takes in what has come by itself, on a connection that has said `listen`: never waits.
    ///
    /// - Returns: whether there was a notification since the last call.
    /// - Throws: `.connectionLost` when the server has closed the connection.
    public func takeNotifications() throws(PostgresError) -> Bool {
        guard state == .idle else { throw misuse("notifications are taken between two statements") }
        // Before the loss is told: what came first counts too.
        let isConnected = PQconsumeInput(handle) == 1
        var isAny = false
        while let notification = PQnotifies(handle) {
            isAny = true
            PQfreemem(notification)
        }
        guard isConnected else {
            let message = PostgresError.text(PQerrorMessage(handle))
            close()
            throw PostgresError(.connectionLost, message)
        }
        return isAny
    }
}
