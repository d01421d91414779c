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

    func bought(_ transaction: String, by user: String, _ at: String = "2026-11-05") -> Event {
        Event("bought \(transaction)", at, by: [user], Event.purchased(transaction))
    }

    /// A database in which Ada has bought `T` and has sent messages.
    func bought(used: Int, _ instant: String = "2026-11-20T12:00:00Z") async throws -> TestDatabase {
        let database = try await fresh(instant)
        try await database.psql.ingest(bought("T", by: ada))
        _ = try await database.consume(user(1), used)
        return database
    }

    func transfer(_ id: String, _ at: String, from: [String], to: [String]) -> Event {
        Event(id, at, type: "TRANSFER", Event.transferred(from: from, to: to))
    }
}
