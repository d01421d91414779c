import TestSupport
import Testing
import Usage

@testable import Engine

/// Five events, and their result in every order.
struct FiveEvents: Sendable, CustomTestStringConvertible {
    var name: String
    var events: [StoreEvent]
    /// Of the user at noon on December 1, after all events.
    var outcome: String

    init(_ name: String, _ outcome: String, _ events: StoreEvent...) {
        self.name = name
        self.events = events
        self.outcome = outcome
    }

    var testDescription: String { name }

    private static func expires(_ date: String) -> [String: String] { ["expires": date] }

    static let all = [
        FiveEvents(
            "a payment that fails, succeeds, and fails again",
            "paid grace_period 2026-12-24T00:00:00Z anchor 5",
            StoreEvent("purchased", "2026-10-05", ["plan": "paid", "expires": "2026-11-05"]),
            StoreEvent("cancelled", "2026-10-20"),
            StoreEvent("grace_period", "2026-11-05", ["grace_until": "2026-11-08"]),
            StoreEvent("renewed", "2026-11-07", ["expires": "2026-12-08"]),
            StoreEvent("grace_period", "2026-12-01T06:00:00Z")
        ),
        FiveEvents(
            "a trial that becomes paid, and changes plan with the next payment",
            "pro cancelled 2027-01-13T00:00:00Z anchor 13 previous paid trial 2026-10-10T00:00:00Z",
            StoreEvent("purchased", "2026-10-10", ["plan": "trial", "expires": "2026-10-13"]),
            StoreEvent("renewed", "2026-10-13", ["plan": "paid", "expires": "2026-11-13"]),
            StoreEvent("product_changed", "2026-11-01", ["next_plan": "pro", "next_product": "pro.monthly"]),
            StoreEvent("renewed", "2026-11-13", expires("2027-01-13")),
            StoreEvent("cancelled", "2026-11-14")
        ),
        FiveEvents(
            "a reversed refund, and a late expiration",
            "paid active 2026-12-10T00:00:00Z anchor 1",
            StoreEvent("purchased", "2026-11-01", ["plan": "paid", "expires": "2026-12-01"]),
            StoreEvent("revoked", "2026-11-02"),
            StoreEvent("reinstated", "2026-11-03"),
            StoreEvent("extended", "2026-11-04", expires("2026-12-10")),
            StoreEvent("expired", "2026-12-01", expires("2026-12-01"))
        ),
        FiveEvents(
            "two products, one refunded and one expired",
            "paid revoked 2026-12-15T00:00:00Z anchor 20 previous paid",
            StoreEvent("purchased", "2026-11-15", ["plan": "paid", "expires": "2026-12-15"]),
            StoreEvent("purchased", "2026-11-20", ["plan": "pro", "expires": "2026-11-30"], transaction: "second"),
            StoreEvent("revoked", "2026-11-21"),
            StoreEvent("cancelled", "2026-11-22", transaction: "second"),
            StoreEvent("expired", "2026-12-01T09:00:00Z", expires("2026-11-30"), transaction: "second")
        ),
        FiveEvents(
            "a refund at the instant of a payment, reported by two sources",
            "pro active 2026-12-07T00:00:00Z anchor 7 previous paid",
            StoreEvent("purchased", "2026-11-01", ["plan": "paid", "expires": "2026-12-01"]),
            StoreEvent("expired", "2026-11-07", expires("2026-12-01"), source: "appstore"),
            StoreEvent("revoked", "2026-11-07", source: "appstore"),
            StoreEvent("purchased", "2026-11-07", ["plan": "pro", "expires": "2026-12-07"]),
            StoreEvent("uncancelled", "2026-11-07", id: "zz")
        ),
        FiveEvents(
            "two trials, the second without a regular plan, and a failed payment",
            "trial trial trial_ended 2026-11-04T00:00:00Z anchor 1 trial 2026-11-01T00:00:00Z",
            StoreEvent("purchased", "2026-11-01", ["plan": "trial"]),
            StoreEvent("cancelled", "2026-11-02"),
            StoreEvent("purchased", "2026-11-20", ["plan": "trial", "expires": "2027-11-20"], transaction: "second"),
            StoreEvent("extended", "2026-11-21", expires("2027-12-20"), transaction: "second"),
            StoreEvent("billing_retry", "2026-11-22", transaction: "second")
        ),
        FiveEvents(
            "incomplete events of an older subscription",
            "team cancelled 2027-10-31T00:00:00Z anchor 31 previous paid",
            StoreEvent("cancelled", "2026-11-01", ["expires": "2026-12-31"]),
            StoreEvent("uncancelled", "2026-11-02", ["plan": "paid"]),
            StoreEvent("product_changed", "2026-11-03", ["plan": "team", "expires": "2027-10-31", "anchor": "31"]),
            StoreEvent("product_changed", "2026-11-04", ["next_plan": "pro"]),
            StoreEvent("cancelled", "2026-11-05")
        ),
        FiveEvents(
            "a payment that ends a trial, and a late refund",
            "paid cancelled 2026-12-14T00:00:00Z anchor 1",
            StoreEvent("extended", "2026-11-01", expires("2026-11-13")),
            StoreEvent("revoked", "2026-11-09", ["plan": "paid"]),
            StoreEvent("grace_period", "2026-11-13", ["plan": "trial"]),
            StoreEvent("renewed", "2026-11-14", ["plan": "paid", "expires": "2026-12-14"]),
            StoreEvent("cancelled", "2026-11-20")
        ),
    ]
}

// Serialized, because each of the many cases has a database and connections of its own.
@Suite("The order in which events arrive", .serialized)
struct EventOrderTests {
    /// The rows of a user, without the user's id and the order of arrival.
    private func state(_ number: UInt64) -> String {
        """
        select jsonb_build_object(
            'subscriptions', (
                select jsonb_agg(
                    to_jsonb(s) - 'user_id'
                        || jsonb_build_object('original_transaction_id', substr(s.original_transaction_id, 38))
                    order by s.original_transaction_id
                )
                from headroom.subscriptions as s where s.user_id = '\(user(number))'
            ),
            'subscriber', (
                select to_jsonb(s) - 'user_id' from headroom.subscribers as s where s.user_id = '\(user(number))'
            ),
            'usage', to_jsonb(
                headroom.format_answer('\(user(number))', headroom.read_usage_snapshot('\(user(number))', 'trial'), 0)
            ) - 'user',
            'audited', (
                select after - '{transaction,bought,product,paid_until,grace_until,billing_issue,unsubscribed,revoked,
                    next_plan,next_product,renews,period_started_at,period_ends_at,period_day}'::text[]
                from headroom.audit_log as l where l.user_id = '\(user(number))' and not l.after ? 'outcome'
                order by id desc limit 1
            )
        )
        """
    }

    @Test("does not matter: orders with repetitions end in one state, in a long run all 120", arguments: FiveEvents.all)
    func orders(history: FiveEvents) async throws {
        let seed = SeededGenerator.newSeed()
        print("orders and repetitions with seed \(seed): \(history.name)")
        var random = SeededGenerator(seed: seed)
        let database = try await TestDatabase.fresh()
        try await database.stopClock(at: at("2026-12-01T12:00:00Z"))
        try await database.psql.execute(
            "insert into headroom.plans (plan, label, cycle, allowance) values ('team', 'Team', 'monthly', 50)"
        )
        var states: Set<String> = []
        let all = permutations(of: history.events)
        #expect(all.count == 120)
        let orders = all.shuffled(using: &random).prefix(isLongRun ? all.count : 24)
        for (number, order) in orders.enumerated() {
            let user = user(UInt64(number))
            var sent: [StoreEvent] = []
            for event in order {
                sent.append(event.of(user))
                // Repeats an earlier event.
                if random.chance(50) { sent.append(random.element(of: sent)) }
            }
            var duplicates = 0
            for event in sent where try await database.psql.apply(event)["outcome"] == "duplicate" { duplicates += 1 }
            #expect(duplicates == sent.count - order.count)
            let state = try await database.psql.text(self.state(UInt64(number)))
            states.insert(try #require(state))
            guard states.count == 1 else {
                let kinds = order.map { "\($0.fields["kind"] ?? "") \($0.fields["at"] ?? "")" }
                Issue.record("seed \(seed), order \(kinds): \(states.sorted())")
                return
            }
        }
        #expect(try await outcome(database) == history.outcome)
    }

    private func outcome(_ database: TestDatabase) async throws -> String? {
        try await database.psql.text(
            """
            select concat_ws(
                ' ', entitlement.plan, entitlement.state, nullif(entitlement.denial_reason, entitlement.state), headroom.instant_text(entitlement.expires_at),
                'anchor', subscriber.anchor_day, 'previous ' || entitlement.previous_plan,
                'trial ' || headroom.instant_text(
                    least(subscriber.trial_started_at, subscriber.store_trial_started_at)
                )
            )
            from headroom.subscribers as subscriber
            cross join lateral headroom.entitlement(subscriber.user_id, headroom.now(), 'deny') as entitlement
            where subscriber.user_id = '\(user(0))'
            """
        )
    }

    private func permutations(of events: [StoreEvent]) -> [[StoreEvent]] {
        guard !events.isEmpty else { return [[]] }
        return events.indices.flatMap { index in
            var rest = events
            let first = rest.remove(at: index)
            return permutations(of: rest).map { [first] + $0 }
        }
    }

    @Test("a repeated event is answered with the present state and changes nothing")
    func repetition() async throws {
        let database = try await TestDatabase.fresh()
        try await database.stopClock(at: at("2026-11-10"))
        let bought = StoreEvent("purchased", "2026-11-01", ["plan": "paid", "expires": "2026-12-01"])
        let first = try await database.psql.apply(bought)
        #expect(
            first == [
                "outcome": "applied", "user": "\(user(1))", "plan": "paid", "state": "active", "access": "true",
                "expires": "2026-12-01T00:00:00Z",
            ]
        )
        let cancelled = try await database.psql.apply(StoreEvent("cancelled", "2026-11-05"))
        #expect(cancelled["state"] == "cancelled")
        let before = try await database.psql.text(state(1))
        let log = try await database.psql.number("select count(*) from headroom.audit_log")
        let again = try await database.psql.apply(bought)
        #expect(again["outcome"] == "duplicate" && again["state"] == "cancelled")
        #expect(try await database.psql.text(state(1)) == before)
        #expect(try await database.psql.number("select count(*) from headroom.audit_log") == log)
        #expect(log == 2)
        // The same id from another source is another event.
        var elsewhere = bought
        elsewhere.fields["source"] = "appstore"
        #expect(try await database.psql.apply(elsewhere)["outcome"] == "applied")
    }
}
