import HeadroomServer
import UsageStore

/// Whether this instance can answer, and if not, why: `GET /readyz`.
struct Readiness: Encodable, Equatable {
    struct Checks: Encodable, Equatable {
        /// Some lane is connected, and the database answered when it was asked last, some seconds ago at most.
        var database: Bool
        /// The schema is at least the one that this binary needs.
        var schema: Bool
        /// The service takes requests.
        var accepting: Bool
    }

    let ready: Bool
    let checks: Checks

    init(_ checks: Checks) {
        self.checks = checks
        ready = checks.database && checks.schema && checks.accepting
    }

    /// - Parameter schemaVersion: nil when it was not looked at yet. The service looked before it started, so that is well.
    init(lanesConnected: Int, databaseAnswers: Bool, schemaVersion: Int?, isDraining: Bool) {
        self.init(
            Checks(
                database: lanesConnected > 0 && databaseAnswers,
                schema: schemaVersion.map { $0 >= Schema.newestMigration } ?? true,
                accepting: !isDraining
            )
        )
    }

    init(_ parts: ServiceParts) {
        self.init(
            lanesConnected: parts.store.snapshot.lanesConnected,
            databaseAnswers: parts.monitor.databaseAnswers,
            schemaVersion: parts.monitor.facts.schemaVersion,
            isDraining: parts.draining.isSet
        )
    }
}
