import CLibPQ

extension DatabaseConnection {
    /// Reads notifications that have arrived on a connection that executed LISTEN. It never waits.
    ///
    /// - Returns: whether a notification arrived since the last call.
    /// - Throws: `.connectionLost` if the server has closed the connection.
    public func takeNotifications() throws(PostgresError) -> Bool {
        guard state == .idle else { throw misuse("notifications are read between two statements") }
        // Notifications that arrived before a loss are read first.
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
