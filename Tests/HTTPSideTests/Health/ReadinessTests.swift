import Testing
import UsageStore

@testable import HTTPSide

@Suite("Readiness")
struct ReadinessTests {
    private let newest = Schema.newestMigration

    @Test("is there with a lane, a schema that is new enough, and no shutdown; else it says what is missing")
    func checks() {
        let well = Readiness(lanesConnected: 1, databaseAnswers: true, schemaVersion: newest, isDraining: false)
        #expect(well.ready && well.checks == Readiness.Checks(database: true, schema: true, accepting: true))
        let silent = Readiness(lanesConnected: 2, databaseAnswers: false, schemaVersion: nil, isDraining: false)
        #expect(!silent.ready && !silent.checks.database)
        let away = Readiness(lanesConnected: 0, databaseAnswers: true, schemaVersion: nil, isDraining: false)
        #expect(!away.ready && away.checks == Readiness.Checks(database: false, schema: true, accepting: true))
        let old = Readiness(lanesConnected: 2, databaseAnswers: true, schemaVersion: newest - 1, isDraining: false)
        #expect(!old.ready && old.checks == Readiness.Checks(database: true, schema: false, accepting: true))
        let draining = Readiness(lanesConnected: 2, databaseAnswers: true, schemaVersion: newest, isDraining: true)
        #expect(!draining.ready && draining.checks == Readiness.Checks(database: true, schema: true, accepting: false))
    }

    @Test("does not depend on a look that is not taken yet, nor on a newer release's schema")
    func unknown() {
        #expect(Readiness(lanesConnected: 1, databaseAnswers: true, schemaVersion: nil, isDraining: false).ready)
        #expect(Readiness(lanesConnected: 1, databaseAnswers: true, schemaVersion: newest + 1, isDraining: false).ready)
    }
}
