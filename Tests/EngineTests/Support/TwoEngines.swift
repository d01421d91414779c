import TestSupport
import Testing
import Usage

@testable import Engine

/// Two engines on one database, as two instances of the service.
enum TwoEngines {
    typealias Body = @Sendable (TestDatabase, _ engine: EngineHarness, _ other: EngineHarness) async throws -> Void

    /// Runs with Ada on the paid plan, at a stopped clock.
    ///
    /// - Parameter lanes: of each engine.
    static func running(at instant: Instant, lanes: Int = 2, _ body: Body) async throws {
        let database = try await TestDatabase.fresh(at: instant)
        let engine = EngineHarness(database.conninfo, lanes: lanes)
        let other = EngineHarness(database.conninfo, lanes: lanes)
        try await engine.running {
            try await other.running {
                _ = try await engine.execute(ada, .setPlan(PlanChange(user: ada, plan: "paid")))
                try await body(database, engine, other)
            }
        }
    }
}
