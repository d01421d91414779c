import Postgres
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
        arguments: SeededGenerator.seeds(always: [1, 2, 3, 17_905_392_897_191_736_320])
    )
    func agreement(seed: UInt64) async throws {
        let buckets = seed.isMultiple(of: 2) ? 1 : 8
        print("random history with seed \(seed), \(buckets) buckets")
        let unknownUsersPolicy = UnknownUsersPolicy.allCases[Int(seed % 3)]
        let database = try await TestDatabase.fresh(at: HistoryGenerator(seed: seed).now)
        try await database.psql.execute("set headroom.unknown_users = '\(unknownUsersPolicy.rawValue)'")
        if buckets > 1 {
            try await database.beginDivision(into: buckets)
            try await database.divideUsers(to: BucketMap.movedMaximum)
        }
        try await compare(seed, EngineHarness(database.conninfo, unknownUsersPolicy: unknownUsersPolicy), database)
    }

    @Test(
        "answers each request as the reference model does where Citus distributes the users",
        .enabled(if: !DistributedDatabases.conninfos.isEmpty, "script/test --citus gives it databases"),
        .serialized,
        arguments: zip(SeededGenerator.seeds(always: [1, 2]), DistributedDatabases.conninfos)
    )
    func agreementOnWorkers(seed: UInt64, conninfo: String) async throws {
        print("random history with seed \(seed) over Citus")
        let policy = UnknownUsersPolicy.allCases[Int(seed % 3)]
        let database = try await TestDatabase.distributed(conninfo, unknownUsers: policy)
        try await database.stopClock(at: HistoryGenerator(seed: seed).now)
        // Citus refuses transactions in which a superuser and the owner of functions write.
        let service = conninfo.replacing("user=postgres", with: "user=backend")
        let harness = EngineHarness(
            service,
            unknownUsersPolicy: policy,
            placements: CurrentPlacements(DatabaseTopology(service))
        )
        try await compare(seed, harness, database)
    }

    private func compare(_ seed: UInt64, _ harness: EngineHarness, _ database: TestDatabase) async throws {
        try await harness.running {
            var run = try await ModelRun(
                seed: seed,
                database: database,
                harness: harness,
                unknownUsersPolicy: UnknownUsersPolicy.allCases[Int(seed % 3)]
            )
            for _ in 0..<EngineModelTests.steps {
                guard try await run.step() else { return }
            }
            #expect(run.compared > EngineModelTests.steps)
        }
    }
}
