import Billing
import Postgres

extension SessionPool {
    /// Records a billing event and applies it, in one transaction; sent again, it changes nothing.
    ///
    /// - Returns: JSON, what became of it.
    package func apply(_ event: BillingEvent, by deadline: ContinuousClock.Instant) async throws(Failure) -> String {
        try await perform(by: deadline) { connection throws(PostgresError) in
            try BillingLedger(connection, deadline: deadline).apply(event)
        }
    }
}
