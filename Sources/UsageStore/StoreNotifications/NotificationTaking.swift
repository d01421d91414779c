import Postgres

extension SessionPool {
    /// Keeps what a store told and applies it, in one transaction; told again, it changes nothing.
    ///
    /// - Parameter notification: JSON, as docs/reference.md has it.
    /// - Returns: JSON, what became of it.
    /// - Throws: an SQLSTATE of class 22 when it is not such JSON; its message names the field.
    package func takeStoreNotification(
        _ notification: String,
        by deadline: ContinuousClock.Instant
    ) async throws(Failure) -> String {
        try await perform(by: deadline) { connection throws(PostgresError) in
            var parameters = Parameters()
            parameters.append(text: notification)
            return try connection.query(EmbeddedSQL.takeStoreNotification, parameters, deadline: deadline).text(0, 0)
        }
    }
}
