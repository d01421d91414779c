import Logging
import Postgres
import TestSupport
import Testing
import Usage

@testable import Engine

@Suite("The housekeeper")
struct HousekeeperTests {
    private func databaseWithOldRows() async throws -> TestDatabase {
        let database = try await TestDatabase.fresh()
        try await database.psql.mapProducts()
        try await database.psql.ingest(Event("old", "2026-01-05", by: ["\(ada)"], Event.purchased("T")))
        try await database.hold(1, of: ada)
        try await database.psql.execute(
            """
            update headroom.message_keys set created_at = now() - interval '30 days';
            update headroom.billing_events set received_at = now() - interval '900 days';
            """
        )
        return database
    }

    /// The number of keys, and of events that have their payload.
    private func remaining(_ psql: Session) async throws -> [Int] {
        let counts = [
            try await psql.number("select count(*) from headroom.message_keys"),
            try await psql.number("select count(payload) from headroom.billing_events"),
        ]
        return counts.compactMap(\.self)
    }

    @Test(
        "performs each task although the other one fails, and logs the failure and the recovery once",
        arguments: [("prune_keys", [1, 0]), ("prune_billing_events", [0, 1])]
    )
    func independent(broken: String, remaining left: [Int]) async throws {
        let database = try await databaseWithOldRows()
        let psql = database.psql
        try await psql.execute("alter function headroom.\(broken) rename to renamed")
        let log = RecordingLog()
        let housekeeper = Housekeeper(database: DatabaseTopology(database.conninfo), keepDays: 7, logger: log.logger)
        let run = Task { await housekeeper.run(every: .milliseconds(1)) }
        func failures(_ level: Logger.Level) -> [RecordingLog.Event] {
            log.events.filter { $0.level == level && $0.message.hasSuffix("failed; it is tried again") }
        }
        try await waitUntil("three attempts") { failures(.debug).count >= 2 }
        #expect(try await remaining(psql) == left)
        #expect(failures(.warning).count == 1 && failures(.warning)[0].metadata.contains(broken))
        try await psql.execute("alter function headroom.renamed rename to \(broken)")
        try await waitUntil("it works again") { !log.messages(.notice).isEmpty }
        run.cancel()
        await run.value
        #expect(try await remaining(psql) == [0, 0])
        #expect(failures(.warning).count == 1)
        #expect(log.messages(.notice).count == 1)
        #expect(log.messages(.info).count == 2)
    }
}
