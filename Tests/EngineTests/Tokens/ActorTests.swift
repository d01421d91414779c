import TestSupport
import Testing
import Usage

@testable import Engine

@Suite("The actor of a change")
struct ActorTests {
    private let app = ChangeAuthor(actor: "token:app")

    @Test("is recorded for that change only")
    func actor() async throws {
        let database = try await TestDatabase.fresh()
        let harness = EngineHarness(database.conninfo, lanes: 1)
        let log = "select string_agg(action || ' ' || actor, ', ' order by id) from headroom.audit_log"
        let changes: [(OperatorChange, action: String)] = [
            (.setPlan(PlanChange(user: ada, plan: "paid")), "plan"),
            (.grant(Grant(5, key: messageKey("g"))), "grant"), (.resetUsage(nil), "reset"),
        ]
        try await harness.running {
            for (change, _) in changes { _ = try await harness.execute(ada, .change(change, by: app)) }
            _ = try await harness.execute(ada, .resetUsage(nil))
            let named = changes.map { "\($0.action) token:app" }.joined(separator: ", ")
            #expect(try await database.psql.text(log) == named + ", reset headroom_service")
            _ = try await harness.execute(ada, .change(.forget, by: app))
            #expect(try await database.psql.text(log)?.hasSuffix("forget token:app") == true)
        }
    }

    @Test("its reason is recorded for that change only")
    func reason() async throws {
        try await EngineHarness.serving(.fresh(), lanes: 1) { database, harness in
            _ = try await harness.execute(ada, .setPlan(PlanChange(user: ada, plan: "paid")))
            let ann = ChangeAuthor(actor: "token:ann", reason: "ticket 4711, it's \"late\"")
            _ = try await harness.execute(ada, .change(.resetUsage(nil), by: ann))
            _ = try await harness.execute(ada, .change(.resetUsage(nil), by: ChangeAuthor(actor: "token:ann")))
            _ = try await harness.execute(ada, .resetUsage(nil))
            let log =
                "select string_agg(coalesce(reason, 'none'), '; ' order by id) from headroom.audit_log where action = 'reset'"
            #expect(try await database.psql.text(log) == "ticket 4711, it's \"late\"; none; none")
        }
    }

    @Test("does not change which requests fail")
    func refusals() async throws {
        try await EngineHarness.serving(.fresh(), lanes: 1) { _, harness in
            let changes: [OperatorChange] = [
                .setPlan(PlanChange(user: ada, plan: "none")), .resetUsage(billingPeriod("2020-01")),
            ]
            for change in changes {
                let plain = try await harness.execute(ada, .change(change))
                #expect(try await harness.execute(ada, .change(change, by: app)) == plain)
                guard case .failure(let error) = plain else {
                    Issue.record("\(change) was done")
                    return
                }
                #expect(error.code == .notFound)
            }
        }
    }
}
