import Postgres
import TestSupport
import Testing
import Usage

@testable import Engine

/// What happens to a user on 20 November, and what is true right after it, before the next message.
private struct Change: Sendable, CustomTestStringConvertible {
    let name: String
    /// Statements, and instants to which the clock moves between them.
    let steps: [String]
    /// The period, messages, limit, tier and status that CHECK answers.
    let expected: String

    var testDescription: String { name }

    init(_ name: String, _ steps: [String], _ expected: String) {
        self.name = name
        self.steps = steps
        self.expected = expected
    }

    private static func consume(_ messages: Int) -> String { "select increment_and_check_usage('\(ada)', \(messages))" }
    private static func setPlan(_ arguments: String) -> String { "select set_plan('\(ada)', \(arguments))" }
    private static func edit(_ change: String, _ plan: String = "paid") -> String {
        "update headroom.plans set \(change) where plan = '\(plan)'"
    }
    private static let paid = setPlan("'paid'")
    private static let grant = "select grant_messages('\(ada)', 5)"
    private static let (days, weeks, months) = (
        edit("cycle = 'daily'"), edit("cycle = 'weekly'"), edit("cycle = 'monthly'")
    )
    private static func daysIn(_ zone: String) -> String { edit("cycle = 'daily', time_zone = '\(zone)'") }
    private static func zone(_ zone: String) -> String { edit("time_zone = \(zone)") }
    /// RESERVE 100 messages for a minute.
    static let reserve = "reserve"

    static let all = [
        Change("bought after a trial", [consume(100), paid], "2026-11 0 800 silent ALLOWED"),
        Change("the trial ends", [consume(5), "2026-11-24T12:00:00Z"], "trial 5 100 blocked BLOCKED"),
        Change(
            "an edit of its days resumes the trial",
            [consume(5), "2026-11-24T12:00:00Z", edit("trial_days = 10", "trial")],
            "trial 5 100 silent ALLOWED"
        ),
        Change(
            "an edit of its days leaves the trial over",
            [consume(5), "2026-11-28T12:00:00Z", edit("trial_days = 5", "trial")],
            "trial 5 100 blocked BLOCKED"
        ),
        Change(
            "the subscription expires",
            [setPlan("'paid', p_expires => '2026-11-21T12:00:00Z'"), consume(5), "2026-11-22T12:00:00Z"],
            "2026-11 5 800 blocked BLOCKED"
        ),
        Change("it is revoked", [paid, consume(5), setPlan("'paid', 'revoked'")], "2026-11 5 800 blocked BLOCKED"),
        Change("it changes to a larger plan", [paid, consume(800), setPlan("'pro'")], "2026-11 800 silent ALLOWED"),
        Change("it changes to the free plan", [paid, consume(5), setPlan("'free'")], "free 0 0 blocked BLOCKED"),
        Change("the allowance falls", [paid, consume(5), edit("allowance = 5")], "2026-11 5 5 blocked BLOCKED"),
        Change("the allowance rises", [paid, consume(800), edit("allowance = 900")], "2026-11 800 900 gentle ALLOWED"),
        Change("the cycle changes", [paid, consume(5), edit("cycle = 'lifetime'")], "paid 0 800 silent ALLOWED"),
        Change("messages are granted", [consume(100), grant], "trial 100 105 prominent ALLOWED"),
        Change("messages are held", [reserve], "trial 0 100 blocked BLOCKED"),
        Change("the hold ends", [reserve, "2026-11-20T12:02:00Z"], "trial 0 100 silent ALLOWED"),
        Change("the month turns", [paid, consume(800), "2026-12-02T12:00:00Z"], "2026-12 0 800 silent ALLOWED"),
        Change(
            "the day turns in Tokyo",
            [daysIn("Asia/Tokyo"), paid, consume(800), "2026-11-20T15:00:00Z"],
            "2026-11-21 0 800 silent ALLOWED"
        ),
        Change("the week turns", [weeks, paid, consume(800), "2026-11-23T00:00:00Z"], "2026-W48 0 800 silent ALLOWED"),
        Change("months become days", [paid, consume(5), days], "2026-11-20 0 800 silent ALLOWED"),
        Change("days become months", [days, paid, consume(5), months], "2026-11 0 800 silent ALLOWED"),
        Change(
            "the allowance of a daily plan falls",
            [days, paid, consume(5), edit("allowance = 5")],
            "2026-11-20 5 5 blocked BLOCKED"
        ),
        Change(
            "a time zone begins the next day",
            [days, paid, consume(5), zone("'Pacific/Kiritimati'")],
            "2026-11-21 0 800 silent ALLOWED"
        ),
        Change(
            "a time zone leaves a day that was used",
            [daysIn("Pacific/Kiritimati"), paid, consume(800), zone("null")],
            "2026-11-21 800 800 blocked BLOCKED"
        ),
        Change(
            "a time zone leaves a day that was not used",
            [daysIn("Pacific/Kiritimati"), paid, zone("null")],
            "2026-11-20 0 800 silent ALLOWED"
        ),
        Change(
            "a time zone goes back two days from a day that was used",
            [daysIn("Pacific/Kiritimati"), paid, "2026-11-21T10:30:00Z", consume(800), zone("'Pacific/Pago_Pago'")],
            "2026-11-22 800 800 blocked BLOCKED"
        ),
        Change(
            "a time zone keeps a day open that had ended in the old one",
            [daysIn("Asia/Tokyo"), paid, "2026-11-20T14:30:00Z", consume(800), "2026-11-20T15:30:00Z", zone("'UTC'")],
            "2026-11-20 800 800 blocked BLOCKED"
        ),
        Change("messages are granted before the first one", [grant], "trial 0 105 silent ALLOWED"),
    ]
}

@Suite("Reports right after a change")
struct CurrentUsageTests {
    private func compare(_ database: TestDatabase, _ engine: EngineHarness, _ expected: String) async throws {
        let psql = database.psql
        let view = "select concat_ws(' ', period, used, \"limit\", tier, status) from current_usage"
        let shown = try await psql.text("\(view) where user_id = '\(ada)'")
        #expect(shown == expected)

        let outcome = try await engine.execute(ada, .check(1))
        let answer = try #require(outcome.answer)
        var fields = try await SQLAnswer.read("select * from current_usage where user_id = '\(ada)'", from: psql)
        if fields["held"] == "0" { fields["held"] = .some(nil) }
        #expect(fields == SQLAnswer.fields(of: answer))
        let isBlocked = if case .blocked = answer.status { true } else { false }
        #expect(isBlocked == (answer.snapshot.tier == .blocked))

        // The period's row, if there is one.
        let snapshot = answer.snapshot
        let row = "\(snapshot.period.label) \(snapshot.used) \(snapshot.tier.rawValue)"
        let monthly = try await psql.text(
            "select concat_ws(' ', billing_period, used, tier) from monthly_usage where user_id = '\(ada)'"
                + " and billing_period = '\(snapshot.period.label)'"
        )
        #expect(monthly == nil || monthly == row)
        guard case .periodUsages(let periods) = try await engine.execute(ada, .history(12)),
            case .periodUsages(let top) = try await engine.read(.top(snapshot.period, count: 10)),
            case .periodUsages(let open) = try await engine.read(.top(.open, count: 10)),
            case .report(let report) = try await engine.read(.report(.open)),
            case .periods(let all) = try await engine.read(.allPeriods)
        else {
            Issue.record("no reports")
            return
        }
        let listed = periods.filter { $0.period == snapshot.period }
        #expect(listed.map { "\($0.period.label) \($0.used) \($0.tier.rawValue)" } == (monthly == nil ? [] : [row]))
        #expect(listed.map(\.limit) == (monthly == nil ? [] : [snapshot.limit]))
        #expect(top == listed)
        let isOpen = try await psql.text("select is_open from current_usage where user_id = '\(ada)'") == "true"
        #expect(open == (isOpen ? listed : []))
        #expect(report.users == open.count)
        #expect(report.users(in: .blocked) == open.filter { $0.tier == .blocked }.count)
        #expect(all.open == report)
        let sums = try await psql.rows("select users, blocked from billing_period_report where billing_period = 'open'")
        #expect(sums == (open.isEmpty ? [] : ["\(report.users)|\(report.users(in: .blocked))"]))
    }

    @Test("say what CHECK answers, before the next message", arguments: Change.all)
    private func agreement(_ change: Change) async throws {
        try await EngineHarness.serving(.fresh(at: at("2026-11-20T12:00:00Z"))) { database, engine in
            for step in change.steps {
                if let instant = Instant(step) {
                    try await database.moveClock(to: instant)
                } else if step == Change.reserve {
                    _ = try await engine.execute(ada, .reserve(100, key: messageKey("k"), ttlSeconds: 60))
                } else {
                    try await database.psql.execute(step)
                }
            }
            try await compare(database, engine, change.expected)
        }
    }

    @Test("say what CHECK answers after a purchase in a store, its refund and its return")
    func store() async throws {
        let database = try await TestDatabase.withProducts(at: at("2026-11-20T12:00:00Z"))
        let engine = EngineHarness(database.conninfo)
        @Sendable func event(_ name: String, _ time: String, _ effect: [String: Any & Sendable]) -> Event {
            Event(name, "2026-11-20T\(time)Z", by: ["\(ada)"], effect)
        }
        try await engine.running {
            _ = try await engine.execute(ada, .consume(100))
            try await database.psql.ingest(event("bought", "10:00:00", Event.purchased("T")))
            try await compare(database, engine, "2026-11 0 800 silent ALLOWED")
            _ = try await engine.execute(ada, .consume(3))
            try await database.psql.ingest(event("refund", "11:00:00", ["kind": "revoked", "transaction": "T"]))
            try await compare(database, engine, "trial 100 100 blocked BLOCKED")
            try await database.psql.ingest(event("return", "11:10:00", ["kind": "reinstated", "transaction": "T"]))
            try await compare(database, engine, "2026-11 3 800 silent ALLOWED")
        }
    }

    @Test("derive the periods of all users at once, and none for a user with a usable row")
    func inSets() async throws {
        let database = try await TestDatabase.fresh(at: at("2026-11-20T12:00:00Z"))
        let psql = database.psql
        for number in UInt64(0)..<20 {
            try await psql.execute(
                "select set_plan('\(user(number))', 'paid'); select increment_and_check_usage('\(user(number))', 800)"
            )
        }
        let blocked = "select count(*) from current_usage where tier = 'blocked'"
        let derived = "select count(*) from headroom.derived_usage"
        #expect(try await psql.number(blocked) == 20)
        #expect(try await psql.number(derived) == 0)
        try await database.moveClock(to: at("2026-12-01T00:00:00Z"))
        #expect(try await psql.number(derived) == 20)
        try await psql.execute("begin; set local track_functions = 'all'")
        #expect(try await psql.number(blocked) == 0)
        #expect(try await psql.number("select count(*) from monthly_usage") == 20)
        let calls = try await psql.rows(
            """
            select funcname from pg_stat_xact_user_functions
            where schemaname = 'headroom' and calls >= 20 and funcname <> 'now'
            """
        )
        try await psql.execute("commit")
        #expect(calls == [])
    }

    @Test(
        "are not compiled in a new database, which takes longer than reading them",
        arguments: ["current_usage", "monthly_usage", "billing_period_report"]
    )
    func compilation(view: String) async throws {
        let psql = try await TestDatabase.fresh().psql
        let plan = try await psql.run { connection in
            try connection.query("explain select * from \(view)", deadline: .now + waitLimit).text(0, 0)
        }
        let cost = try #require(plan.firstMatch(of: /cost=[0-9.]+?\.\.([0-9.]+)/))
        let most = try #require(try await psql.text("select reset_val from pg_settings where name = 'jit_above_cost'"))
        #expect(try #require(Double(cost.1)) < #require(Double(most)))
    }

    @Test("have every field of an answer that names no part, and every column of the adopted table")
    func columns() async throws {
        let database = try await TestDatabase.fresh()
        let missing = try await database.psql.rows(
            """
            select name from (
                select attname as name from pg_attribute
                where attrelid = (select typrelid from pg_type where oid = 'headroom.answer'::regtype) and attnum > 0
                    and attname !~ '^(model|member|fallback)'
                union all
                select unnest(array['user_id', 'billing_period', 'message_count', 'limit', 'updated_at'])
            ) as wanted
            except select attname from pg_attribute where attrelid = 'current_usage'::regclass
            """
        )
        #expect(missing == [])
    }

    @Test("do not fail because of one user's invalid value")
    func invalidValue() async throws {
        let database = try await TestDatabase.fresh()
        try await database.psql.execute(
            """
            select increment_and_check_usage('\(ada)'), increment_and_check_usage('\(ben)');
            alter table headroom.subscribers drop constraint anchor_day_is_1_to_31;
            update headroom.subscribers set anchor_day = 0 where user_id = '\(ben)';
            update message_usage set usable_until = '-infinity';
            alter table headroom.plans disable trigger check_time_zone;
            insert into headroom.plans (plan, label, cycle, time_zone) values ('lost', 'Lost', 'daily', 'Atlantis');
            insert into headroom.subscribers (user_id) values ('\(user(5))');
            insert into headroom.subscriptions (user_id, original_transaction_id, plan)
            values ('\(user(5))', 'operator', 'lost');
            insert into message_usage (user_id, billing_period, plan)
            values ('\(user(5))', to_char(headroom.now(), 'YYYY-MM-DD'), 'lost');
            """
        )
        #expect(try await database.psql.number("select count(*) from monthly_usage") == 3)
        let tiers = try await database.psql.rows("select tier, coalesce(display, '-') from current_usage order by tier")
        #expect(tiers.count == 3)
        #expect(tiers.first?.hasPrefix("silent|") == true)
    }
}
