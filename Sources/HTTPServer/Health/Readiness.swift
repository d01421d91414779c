import Engine
import HeadroomServer

/// Whether this instance can answer, and if not, why: `GET /readyz`. Shown to everybody, so it names no host, no user
/// and nothing in the database.
struct Readiness: Encodable, Equatable {
    struct Checks: Encodable, Equatable {
        /// Some lane is connected, and the database answered when it was asked last, some seconds ago at most.
        var database: Bool
        /// The schema is at least the one that this binary needs.
        var schema: Bool
        /// It is known which tokens are live, or none is ever required.
        var tokens: Bool
        /// The service takes requests.
        var accepting: Bool
    }

    /// What is looked at.
    struct Facts {
        var lanesConnected: Int
        var databaseAnswers: Bool
        /// Why it does not, where that is known.
        var databaseProblem: String?
        /// Nil when it was not looked at yet. The service looked before it started, so that is well.
        var schemaVersion: Int?
        /// Nil where there is none.
        var tokensProblem: String?
        var isDraining: Bool
    }

    let ready: Bool
    let checks: Checks
    /// A sentence for each check that is false.
    let reasons: [String]

    init(_ facts: Facts) {
        let checks = Checks(
            database: facts.lanesConnected > 0 && facts.databaseAnswers,
            schema: facts.schemaVersion.map { $0 >= Schema.newestMigration } ?? true,
            tokens: facts.tokensProblem == nil,
            accepting: !facts.isDraining
        )
        self.checks = checks
        ready = checks.database && checks.schema && checks.tokens && checks.accepting
        var reasons: [String] = []
        if !checks.database {
            let what = facts.lanesConnected > 0 ? "the database did not answer last" : "no lane is connected"
            reasons.append("database: " + what + (facts.databaseProblem.map { "; \($0)" } ?? ""))
        }
        if !checks.schema, let version = facts.schemaVersion {
            reasons.append(
                "schema: the newest migration is \(version), this release needs \(Schema.newestMigration); "
                    + "run headroom migrate"
            )
        }
        if let problem = facts.tokensProblem { reasons.append("tokens: \(problem)") }
        if !checks.accepting { reasons.append("accepting: the service shuts down") }
        self.reasons = reasons
    }

    init(_ parts: ServiceParts) {
        self.init(
            Facts(
                lanesConnected: parts.engine.snapshot.lanesConnected,
                databaseAnswers: parts.monitor.databaseAnswers,
                databaseProblem: parts.monitor.problem,
                schemaVersion: parts.monitor.facts.schemaVersion,
                tokensProblem: parts.access.tokensProblem,
                isDraining: parts.draining.isSet
            )
        )
    }
}
