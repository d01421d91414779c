import Engine
import Testing

@testable import HTTPServer

@Suite("Readiness")
struct ReadinessTests {
    private let newest = Schema.newestMigration
    private let well = Readiness.Facts(
        lanesConnected: 1,
        databaseAnswers: true,
        databaseProblem: nil,
        schemaVersion: Schema.newestMigration,
        tokensProblem: nil,
        isDraining: false
    )

    private func readiness(_ change: (inout Readiness.Facts) -> Void) -> Readiness {
        var facts = well
        change(&facts)
        return Readiness(facts)
    }

    @Test("is there with a lane, a schema that is new enough, known tokens, and no shutdown")
    func ready() {
        let readiness = Readiness(well)
        #expect(readiness.ready && readiness.reasons.isEmpty)
        #expect(readiness.checks == Readiness.Checks(database: true, schema: true, tokens: true, accepting: true))
    }

    @Test("is not there without one of them, which is false, with the reason")
    func reasons() {
        let silent = readiness { ($0.databaseAnswers, $0.databaseProblem) = (false, "it broke") }
        #expect(!silent.ready && !silent.checks.database)
        #expect(silent.reasons == ["database: the database did not answer last; it broke"])
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
        #expect(draining.reasons == ["accepting: the service shuts down"])
    }

    @Test("does not depend on a look that is not taken yet, nor on a newer release's schema")
    func unknown() {
        #expect(readiness { $0.schemaVersion = nil }.ready)
        #expect(readiness { $0.schemaVersion = newest + 1 }.ready)
    }
}
