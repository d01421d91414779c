import TestSupport
import Testing
import Usage

@testable import Engine

@Suite("The engine, in random histories")
struct EngineModelTests {
    private static let steps = 300

    // Serialized, because each has three connections, and a long list of seeds would use up all of the server's.
    @Test(
        "answers each request as the reference model does",
        .serialized,
        arguments: SeededGenerator.seeds(always: [1, 2, 3, 4, 5]),
        [1, 8]
    )
    func agreement(seed: UInt64, buckets: Int) async throws {
        print("random history with seed \(seed), \(buckets) buckets")
        let unknownUsersPolicy = UnknownUsersPolicy.allCases[Int(seed % 3)]
        let database = try await TestDatabase.fresh()
        try await database.stopClock(at: HistoryGenerator(seed: seed).now)
        try await database.psql.execute("set headroom.unknown_users = '\(unknownUsersPolicy.rawValue)'")
        if buckets > 1 {
            try await database.beginDivision(into: buckets)
            try await database.divideUsers(to: BucketMap.movedMaximum)
        }
        let harness = EngineHarness(database.conninfo, unknownUsersPolicy: unknownUsersPolicy)
        try await harness.running {
            var run = try await ModelRun(
                seed: seed,
                database: database,
                harness: harness,
                unknownUsersPolicy: unknownUsersPolicy
            )
            for _ in 0..<EngineModelTests.steps {
                guard try await run.step() else { return }
            }
            #expect(run.compared > EngineModelTests.steps)
        }
    }
}
