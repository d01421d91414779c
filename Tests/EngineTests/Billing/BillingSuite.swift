import TestSupport
import Usage

@testable import Engine

/// What the suites about billing events share: three users, a database with products, and events.
protocol BillingSuite {}

extension BillingSuite {
    var ada: String { "\(user(1))" }
    var bob: String { "\(user(2))" }
    var cleo: String { "\(user(3))" }

    func fresh(_ instant: String = "2026-11-20T12:00:00Z") async throws -> TestDatabase {
        try await .withProducts(at: at(instant))
    }

    /// Denial reason, plan, used and limit for the next message.
    func snapshot(_ user: UserID, _ database: TestDatabase) async throws -> String {
        try await database.psql.rows(
            """
            select coalesce(snapshot.denial_reason, 'fine'), snapshot.plan, snapshot.used, snapshot."limit"
            from headroom.read_usage_snapshot('\(user)', 'trial') as snapshot
            """
        ).joined()
    }

    func transfer(_ id: String, _ at: String, from: [String], to: [String]) -> Event {
        Event(id, at, type: "TRANSFER", Event.transferred(from: from, to: to))
    }
}
