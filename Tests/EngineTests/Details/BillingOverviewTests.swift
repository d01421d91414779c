import Postgres
import TestSupport
import Testing
import Usage

@testable import Engine

@Suite("The billing overview")
struct BillingOverviewTests {
    private func read(_ database: TestDatabase) async throws -> BillingOverview {
        try await onThread {
            let connection = try DatabaseConnection.connect(database.conninfo)
            defer { connection.close() }
            return try BillingOverview.read(limit: 2, on: connection, deadline: .now + waitLimit)
        }
    }

    @Test("has all plans, the newest failed events and their number")
    func overview() async throws {
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
        let overview = try await read(database)
        #expect(overview.failedCount == 3)
        #expect(overview.failedEvents.map(\.problem) == ["problem 3", "problem 2"])
        #expect(overview.failedEvents.map(\.user) == [user(1), nil])
        #expect(overview.failedEvents.map(\.name.id) == ["event 3", "event 2"])
        #expect(overview.failedEvents.map(\.receivedAt) == [at("2026-11-01T03:00:00Z"), at("2026-11-01T02:00:00Z")])
    }
}
