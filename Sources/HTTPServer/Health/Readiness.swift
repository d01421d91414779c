import Engine
import ServiceCore

/// Whether this instance can answer requests, and if not, why: `GET /readyz`. Public, so it names no host, no user and
/// no content of the database.
struct Readiness: Encodable, Equatable {
    struct Checks: Encodable, Equatable {
        /// A lane is connected, the database answered the last probe, at most some seconds ago, and commits end.
        var database: Bool
        /// The schema is at least as new as this binary requires.
        var schema: Bool
        /// The valid tokens are known, or none are required.
        var tokens: Bool
        /// The service is not shutting down.
        var accepting: Bool
    }

    /// The observations that readiness depends on.
    struct Observations {
        var lanesConnected: Int
        var databaseAnswers: Bool
        /// Why it does not, if that is known.
        var databaseProblem: String?
        /// What a failover would lose; nil before the first probe.
        var replication: DatabaseMonitor.Replication?
        var supersededPrimaries = 0
        /// It is nil before the first probe, and then counts as new enough: the service has checked it at its start.
        var schemaVersion: Int?
        /// Why the tokens cannot be read; nil if they can.
        var tokensProblem: String?
        var isDraining: Bool
    }

    let ready: Bool
    let checks: Checks
    /// A sentence for each check that is false.
    let reasons: [String]
    /// What an operator should know, although the instance can answer.
    let warnings: [String]

    init(_ observed: Observations) {
        let checks = Checks(
            database: observed.lanesConnected > 0 && observed.databaseAnswers && observed.replication != .stopped,
            schema: observed.schemaVersion.map { $0 >= Schema.newestMigration } ?? true,
            tokens: observed.tokensProblem == nil,
            accepting: !observed.isDraining
        )
        self.checks = checks
        ready = checks.database && checks.schema && checks.tokens && checks.accepting
        var reasons: [String] = []
        if observed.replication == .stopped {
            reasons.append("database: \(DatabaseMonitor.Replication.adviceWhenStopped)")
        } else if !checks.database {
            let cause =
                observed.lanesConnected > 0 ? "the database did not answer the last probe" : "no lane is connected"
            reasons.append("database: " + cause + (observed.databaseProblem.map { "; \($0)" } ?? ""))
        }
        if !checks.schema, let version = observed.schemaVersion {
            reasons.append(
                "schema: the newest migration is \(version), this release needs \(Schema.newestMigration); "
                    + "run headroom migrate"
            )
        }
        if let problem = observed.tokensProblem { reasons.append("tokens: \(problem)") }
        if !checks.accepting { reasons.append("accepting: the service is shutting down") }
        self.reasons = reasons
        warnings = Readiness.warnings(observed)
    }

    private static func warnings(_ observed: Observations) -> [String] {
        var warnings: [String] = []
        if observed.replication == .asynchronous {
            warnings.append(
                "replication: standbys replicate asynchronously, so a failover loses messages that were answered"
            )
        }
        if observed.supersededPrimaries > 0 {
            warnings.append("replication: a superseded server takes writes; the log names it")
        }
        return warnings
    }

    init(_ dependencies: ServiceDependencies) {
        self.init(
            Observations(
                lanesConnected: dependencies.engine.snapshot.lanesConnected,
                databaseAnswers: dependencies.monitor.databaseAnswers,
                databaseProblem: dependencies.monitor.problem,
                replication: dependencies.monitor.status.replication,
                supersededPrimaries: dependencies.serverWatch.supersededPrimaries,
                schemaVersion: dependencies.monitor.status.schemaVersion,
                tokensProblem: dependencies.access.tokensProblem,
                isDraining: dependencies.draining.isSet
            )
        )
    }
}
