import Engine
import Testing

@testable import HTTPServer

@Suite("Readiness")
struct ReadinessTests {
    private let newest = Schema.newestMigration
    private let healthy = Readiness.Observations(
        lanesConnected: 1,
        databaseAnswers: true,
        databaseProblem: nil,
        schemaVersion: Schema.newestMigration,
        tokensProblem: nil,
        isDraining: false
    )

    private func readiness(_ change: (inout Readiness.Observations) -> Void) -> Readiness {
        var observed = healthy
        change(&observed)
        return Readiness(observed)
    }

    @Test("the service is ready with a lane, a new enough schema, known tokens, and no shutdown")
    func ready() {
        let readiness = Readiness(healthy)
        #expect(readiness.ready && readiness.reasons.isEmpty)
        #expect(readiness.checks == Readiness.Checks(database: true, schema: true, tokens: true, accepting: true))
    }

    @Test("the service is not ready if a check fails, and gives the reason")
    func reasons() {
        let silent = readiness { ($0.databaseAnswers, $0.databaseProblem) = (false, "it broke") }
        #expect(!silent.ready && !silent.checks.database)
        #expect(silent.reasons == ["database: the database did not answer the last probe; it broke"])
        let away = readiness { ($0.lanesConnected, $0.schemaVersion) = (0, nil) }
        #expect(!away.ready && !away.checks.database && away.checks.schema)
        #expect(away.reasons == ["database: no lane is connected"])
        let old = readiness { $0.schemaVersion = newest - 1 }
        #expect(!old.ready && !old.checks.schema && old.checks.database)
        #expect(old.reasons.count == 1 && old.reasons[0].hasSuffix("run headroom migrate"))
        let unread = readiness { $0.tokensProblem = "tokens were last read 12 s ago: it broke" }
        #expect(!unread.ready && !unread.checks.tokens && unread.checks.database)
        #expect(unread.reasons == ["tokens: tokens were last read 12 s ago: it broke"])
        let draining = readiness { $0.isDraining = true }
        #expect(!draining.ready && !draining.checks.accepting)
        #expect(draining.reasons == ["accepting: the service is shutting down"])
    }

    @Test("the service is not ready while commits wait for a standby that is not there, and says what to run")
    func stoppedReplication() {
        let stopped = readiness { $0.replication = .stopped }
        #expect(!stopped.ready && !stopped.checks.database && stopped.reasons.count == 1)
        #expect(stopped.reasons.first?.contains("set synchronous_standby_names = ''") == true)
        // No lane can be opened then, because opening one commits.
        #expect(readiness { ($0.replication, $0.lanesConnected) = (.stopped, 0) }.reasons == stopped.reasons)
    }

    @Test("warns of what a failover would lose, and of a superseded server that takes writes")
    func warnings() {
        #expect(Readiness(healthy).warnings.isEmpty)
        let asynchronous = readiness { $0.replication = .asynchronous }
        #expect(asynchronous.ready && asynchronous.warnings.count == 1)
        let superseded = readiness { ($0.replication, $0.supersededPrimaries) = (.synchronous, 1) }
        #expect(superseded.ready && superseded.warnings.first?.contains("superseded") == true)
    }

    @Test("an unread schema version and a newer schema count as ready")
    func unknown() {
        #expect(readiness { $0.schemaVersion = nil }.ready)
        #expect(readiness { $0.schemaVersion = newest + 1 }.ready)
    }
}
