import TestSupport
import Testing
import Usage

@testable import Engine

/// Two transactions of one user, and the one that counts.
private struct Pair: Sendable {
    var name: String
    /// The events of the first transaction, bought on November 1 until December 1, and of the second.
    var first: [StoreEvent]
    var second: [StoreEvent]
    var expected: String

    init(
        _ name: String,
        _ first: (plan: String, events: [StoreEvent]),
        _ second: (plan: String, events: [StoreEvent]),
        _ expected: String
    ) {
        func bought(_ plan: String) -> StoreEvent {
            StoreEvent("purchased", "2026-11-01", ["plan": plan, "expires": "2026-12-01", "anchor": "1"])
        }
        func moved(_ events: [StoreEvent]) -> [StoreEvent] {
            events.map { event in
                var event = event
                event.fields["transaction"] = "transaction 2"
                event.fields["id"] = "second " + (event.fields["id"] ?? "")
                return event
            }
        }
        self.name = name
        self.first = [bought(first.plan)] + first.events
        self.second = moved([bought(second.plan)] + second.events)
        self.expected = expected
    }

    private static let revoked = StoreEvent("revoked", "2026-11-05")
    private static let cancelled = StoreEvent("cancelled", "2026-11-05")
    private static let grace = StoreEvent("grace_period", "2026-11-05", ["grace_until": "2026-11-06"])
    private static let retry = [
        StoreEvent("renewed", "2026-11-02", ["expires": "2026-11-05"]), StoreEvent("billing_retry", "2026-11-05"),
    ]
    private static let expired = [
        StoreEvent("renewed", "2026-11-02", ["expires": "2026-11-05"]), StoreEvent("expired", "2026-11-05"),
    ]

    static let all = [
        Pair("a refund of one leaves the other", ("pro", [revoked]), ("paid", []), "paid active"),
        Pair("an expiry of one leaves the other", ("pro", expired), ("paid", [cancelled]), "paid cancelled"),
        Pair("a billing issue of one without access leaves the other", ("paid", retry), ("paid", []), "paid active"),
        Pair("a billing issue comes before active", ("paid", [grace]), ("paid", []), "paid grace_period"),
        Pair("a billing issue comes before cancelled", ("paid", [cancelled]), ("paid", [grace]), "paid grace_period"),
        Pair("active comes before cancelled", ("paid", []), ("paid", [cancelled]), "paid active"),
        Pair("a larger subscription applies", ("paid", [cancelled]), ("pro", []), "pro active"),
        Pair("a larger subscription applies, also over a billing issue", ("pro", []), ("paid", [grace]), "pro active"),
        Pair("the messages of 30 days are compared", ("paid", []), ("hundred", []), "hundred active"),
        Pair("and those of weeks", ("paid", []), ("weeks", []), "paid active"),
        Pair("an unenforced limit is none", ("paid", []), ("unenforced", []), "unenforced active"),
        Pair("a refund comes before a billing issue", ("paid", [revoked]), ("pro", retry), "paid revoked revoked"),
        Pair("a refund comes before an expiry", ("paid", expired), ("pro", [revoked]), "pro revoked revoked"),
        Pair("a billing issue before an expiry", ("paid", retry), ("pro", expired), "paid billing_retry billing_retry"),
        Pair("a trial does not come back", ("trial", []), ("paid", [revoked]), "paid revoked revoked"),
        Pair("a subscription comes before a trial", ("trial", []), ("paid", []), "paid active"),
        Pair("a trial comes before the free plan", ("trial", []), ("free", []), "trial trial"),
        Pair("a trial that is over, too", ("trial", expired), ("free", []), "trial trial trial_ended"),
    ]
}

@Suite("Of several subscriptions")
struct SeveralSubscriptionsTests {
    @Test("the required one counts, whichever was reported first")
    func which() async throws {
        let database = try await TestDatabase.fresh(at: at("2026-11-05T12:00:00Z"))
        try await database.psql.execute(
            """
            insert into headroom.plans (plan, label, cycle, allowance, enforced) values
                ('hundred', '100 a day', 'daily', 100, true), ('weeks', '150 a week', 'weekly', 150, true),
                ('unenforced', 'Unenforced', 'monthly', 10, false)
            """
        )
        for (index, pair) in Pair.all.enumerated() {
            for (turn, events) in [pair.first + pair.second, pair.second + pair.first].enumerated() {
                let user = user(UInt64(2 * index + turn))
                for event in events { try await database.psql.apply(event.of(user)) }
                let answer = try await database.psql.text(
                    """
                    select concat_ws(' ', plan, state, denial_reason)
                    from headroom.entitlement('\(user)', headroom.now(), 'trial')
                    """
                )
                #expect(answer == pair.expected, "\(pair.name), order \(turn)")
                #expect(try await database.hasChosenPlan(user), "\(pair.name), order \(turn)")
            }
        }
    }

    @Test("when one ends, the other counts from that instant on, without an event")
    func succession() async throws {
        try await EngineHarness.serving(.fresh(at: at("2026-11-01"))) { database, engine in
            try await database.report(
                StoreEvent("purchased", "2026-11-01", ["plan": "pro", "expires": "2026-11-10"], transaction: "short"),
                StoreEvent("purchased", "2026-11-01", ["plan": "paid", "expires": "2026-11-20"], transaction: "long")
            )
            let ada = user(1)
            _ = try await engine.execute(ada, .consume(900))
            for (instant, expected) in [
                (at("2026-11-10").justBefore, "pro active ALLOWED"), (at("2026-11-10"), "paid active BLOCKED"),
                (at("2026-11-20").justBefore, "paid active BLOCKED"), (at("2026-11-20"), "paid expired BLOCKED"),
            ] {
                try await database.moveClock(to: instant)
                let fields = SQLAnswer.fields(of: try #require(try await engine.execute(ada, .consume(1)).answer))
                let answer = ["plan", "state", "status"].map { (fields[$0] ?? nil) ?? "" }.joined(separator: " ")
                #expect(answer == expected)
            }
        }
    }

    @Test("each belongs to the user of its newest event, also for a refund without a user")
    func users() async throws {
        let database = try await TestDatabase.fresh(at: at("2026-11-01"))
        for number: UInt64 in 1...2 {
            for transaction in ["transaction 1", "own \(number)"] {
                try await database.report(
                    StoreEvent(
                        "purchased",
                        "2026-11-0\(number)",
                        ["plan": "paid"],
                        of: user(number),
                        transaction: transaction
                    )
                )
            }
        }
        var revoked = StoreEvent("revoked", "2026-11-03")
        revoked.fields["user"] = nil
        try await database.moveClock(to: at("2026-11-03"))
        #expect(try await database.psql.apply(revoked)["user"] == "\(user(2))")
        let left = try await database.psql.rows(
            """
            select user_id, original_transaction_id, revoked_at is not null as is_revoked from headroom.subscriptions
            order by 1, 2
            """
        )
        #expect(left == ["\(user(1))|own 1|false", "\(user(2))|own 2|false", "\(user(2))|transaction 1|true"])
        #expect(try await database.usage(user(1))["state"] == "active")
    }
}
