import Postgres
import TestSupport
import Testing
import Usage

@testable import Engine

@Suite("What an overview reads beside usage")
struct OverviewRecordsTests {
    private func read(_ database: TestDatabase) async throws -> OverviewRecords {
        try await onThread {
            let connection = try Connection.connect(database.conninfo)
            defer { connection.close() }
            return try OverviewRecords.read(limit: 2, on: connection, deadline: .now + waitLimit)
        }
    }

    @Test("is all plans, and the newest events that failed with how many there are")
    func records() async throws {
        let database = try await TestDatabase.fresh()
        let none = try await read(database)
        #expect(none.plans == Plan.initial.sorted { $0.name < $1.name })
        #expect(none.failedEvents.isEmpty && none.failedCount == 0)
        try await database.psql.execute(
            """
            insert into headroom.billing_events (
                source, id, type, happened_at, received_at, identities, user_id, outcome, problem, attempts
            )
            select
                'stripe', 'event ' || number, 'invoice.paid', '2026-11-01Z',
                '2026-11-01Z'::timestamptz + number * interval '1 hour', '{}',
                case number when 3 then '\(user(1))'::uuid end, case when number < 4 then 'failed' else 'applied' end,
                case when number < 4 then 'problem ' || number end, 1
            from generate_series(1, 4) as number
            """
        )
        let records = try await read(database)
        #expect(records.failedCount == 3)
        #expect(records.failedEvents.map(\.problem) == ["problem 3", "problem 2"])
        #expect(records.failedEvents.map(\.user) == [user(1), nil])
        #expect(records.failedEvents.map(\.receivedAt) == [at("2026-11-01T03:00:00Z"), at("2026-11-01T02:00:00Z")])
    }
}
