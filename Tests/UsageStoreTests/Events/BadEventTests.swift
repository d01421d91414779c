import Postgres
import TestSupport
import Testing
import Usage

@testable import UsageStore

/// A good event with one thing wrong, and what the error says of it.
private struct Mistake: Sendable, CustomTestStringConvertible {
    var event: String
    var state: String
    var says: String

    var testDescription: String { "\(says): \(event.prefix(120))" }

    static let good: [String: String] = [
        "id": #""1""#, "source": #""revenuecat""#, "at": #""2026-11-10T08:00:00Z""#, "kind": #""renewed""#,
        "user": #""\#(user(1))""#, "transaction": #""transaction 1""#, "plan": #""pro""#,
        "product": #""pro.monthly""#, "started": #""2026-11-10""#, "expires": #""2026-12-10T08:00:00+01:00""#,
        "anchor": "10", "environment": #""production""#,
    ]

    static func json(_ fields: [String: String]) -> String {
        "{" + fields.sorted { $0.key < $1.key }.map { "\"\($0.key)\": \($0.value)" }.joined(separator: ", ") + "}"
    }

    /// - Parameter value: as JSON; nil leaves the field out.
    init(_ field: String, _ value: String?, _ state: String, _ says: String, _ more: [String: String] = [:]) {
        var fields = Mistake.good.merging(more) { $1 }
        fields[field] = value
        self.init(event: Mistake.json(fields), state, says)
    }

    init(event: String, _ state: String, _ says: String) {
        self.event = event
        self.state = state
        self.says = says
    }

    private static let missing = ["id", "source", "at", "kind", "transaction", "expires"].flatMap { field in
        [nil, "null"].map { Mistake(field, $0, "22004", "'\(field)' is missing") }
    }

    private static let notText = good.keys.sorted().filter { $0 != "anchor" }.flatMap { field in
        ["7", "true", "{}", #"["a"]"#].map { Mistake(field, $0, "22023", "'\(field)' must be a text") }
    }

    private static let malformed = [
        ("id", #""""#), ("id", #""a\nb""#), ("id", "\"" + String(repeating: "a", count: 256) + "\""),
        ("source", #""Apple""#), ("source", #""app store""#), ("kind", #""""#), ("kind", #""what is it""#),
        ("user", #""""#), ("user", #""7f1c0a52""#), ("user", #""{\#(user(1))}""#),
        ("transaction", #""""#), ("transaction", #""\u0007""#), ("plan", #""Pro""#), ("plan", #""2026-11""#),
        ("product", #""""#), ("environment", #""\t""#),
    ].map { Mistake($0.0, $0.1, "22023", "'\($0.0)' does not have the form of one") }

    private static let anchors = ["0", "32", "-1", "1.5", #""10""#, "99999999999999999999", "true"].map {
        Mistake("anchor", $0, "22023", "'anchor' must be a number, the day of the month from 1 to 31")
    }

    private static let instants = ["at", "started", "expires"].flatMap { field in
        [
            Mistake(field, #""yesterday""#, "22023", "'\(field)' is not an instant"),
            Mistake(field, #""infinity""#, "22023", "'\(field)' is not an instant"),
            Mistake(field, #""2026-11-10T08:00:00""#, "22023", "'\(field)' is not an instant"),
            Mistake(field, #""2026-11-10T24:00:00Z""#, "22023", "'\(field)' is not an instant"),
            Mistake(field, #""2026-11-10 08:00:00+00""#, "22023", "'\(field)' is not an instant"),
            Mistake(field, #""1795000000""#, "22023", "'\(field)' is not an instant"),
            Mistake(field, #""2026-02-29""#, "22023", "'\(field)' is a day that does not exist"),
            Mistake(field, #""2026-13-01""#, "22023", "'\(field)' is a day that does not exist"),
            Mistake(field, #""2026-00-10T08:00:00Z""#, "22023", "'\(field)' is a day that does not exist"),
            Mistake(field, #""1969-12-31T23:59:59Z""#, "22023", "'\(field)' must be in the years 1970 to 9999"),
            Mistake(field, #""9999-12-31T23:59:59-01:00""#, "22023", "'\(field)' must be in the years 1970 to 9999"),
        ]
    }

    private static let meaningless = [
        Mistake("at", #""2026-11-12T12:00:01Z""#, "22023", "'at' is in the future"),
        Mistake("expires", #""2026-11-09""#, "22023", "'expires' is before 'started'"),
        Mistake("transaction", #""operator""#, "22023", "'transaction' is a name that Headroom itself uses"),
        Mistake("transaction", #""first message""#, "22023", "'transaction' is a name that Headroom itself uses"),
        Mistake("grace_until", #""2026-12-20""#, "22023", "'grace_until' has no meaning in an event of kind 'renewed'"),
        Mistake("next_plan", #""pro""#, "22023", "'next_plan' has no meaning in an event of kind 'renewed'"),
        Mistake("next_product", #""pro""#, "22023", "'next_product' has no meaning in an event of kind 'renewed'"),
        Mistake("plan", #""gold""#, "P0002", "there is no plan 'gold'"),
        Mistake("next_plan", #""gold""#, "P0002", "there is no plan 'gold'", ["kind": #""product_changed""#]),
        Mistake("plan", nil, "22004", "'plan' is missing", ["kind": #""purchased""#]),
        Mistake("expires", nil, "22004", "'expires' is missing", ["kind": #""extended""#]),
        Mistake("message", #""hello""#, "22023", "a store event has no field 'message'"),
        Mistake("Id", #""1""#, "22023", "a store event has no field 'Id'"),
        Mistake("user", nil, "P0002", "the user of this transaction is not known", ["transaction": #""unheard""#]),
        Mistake(event: "[]", "22023", "p_event must be a JSON object"),
        Mistake(event: #""renewed""#, "22023", "p_event must be a JSON object"),
        Mistake(event: "null", "22023", "p_event must be a JSON object"),
        Mistake(event: "{}", "22004", "'id' is missing"),
    ]

    static let all = missing + notText + malformed + anchors + instants + meaningless
}

@Suite("A bad event")
struct BadEventTests {
    /// Every row that an event may write, with the transaction that wrote it.
    private static let everything = """
        select string_agg(line, E'\\n' order by line) from (
            select format('%s %s', r, r.xmin) from headroom.store_events as r
            union all select format('%s %s', r, r.xmin) from headroom.subscriptions as r
            union all select format('%s %s', r, r.xmin) from headroom.subscribers as r
            union all select format('%s %s', r, r.xmin) from headroom.audit_log as r
            union all select format('%s %s', r, r.xmin) from public.message_usage as r
        ) as lines (line)
        """

    @Test("gets an error that says what is wrong, and changes nothing")
    func refused() async throws {
        let database = try await TestDatabase.fresh()
        try await database.stopClock(at: at("2026-11-11T12:00:00Z"))
        try await database.psql.apply(
            StoreEvent("purchased", "2026-11-01", ["plan": "paid", "expires": "2026-12-01"])
        )
        _ = try await database.consume(user(1), 5)
        let before = try await database.psql.text(BadEventTests.everything)
        for mistake in Mistake.all {
            let place: Comment = "\(mistake.testDescription)"
            do {
                let answer = try await database.psql.apply(mistake.event)
                Issue.record("\(mistake.testDescription) was answered \(answer)")
            } catch let error as PostgresError {
                #expect(error.sqlState?.rawValue == mistake.state, place)
                #expect(error.message == mistake.says, place)
            }
        }
        #expect(try await database.psql.text(BadEventTests.everything) == before)
        #expect(Mistake.all.count > 120)
        // The event without a mistake is a good one.
        #expect(try await database.psql.apply(Mistake.json(Mistake.good))["outcome"] == "applied")
        #expect(try await database.usage(user(1))["plan"] == "pro")
    }

    @Test("that is null is refused as such")
    func null() async throws {
        let database = try await TestDatabase.fresh()
        await #expect(throws: PostgresError.self) {
            try await database.psql.execute("select apply_store_event(null)")
        }
    }

    @Test("is not one of a kind that nobody knows: it is kept, and has no effect")
    func unknownKind() async throws {
        let database = try await TestDatabase.fresh()
        try await database.stopClock(at: at("2026-11-11T12:00:00Z"))
        let test = #"{"id": "1", "source": "appstore", "kind": "TEST", "at": "2026-11-11T12:00:00Z"}"#
        #expect(try await database.psql.apply(test) == ["outcome": "ignored"])
        #expect(try await database.psql.apply(test) == ["outcome": "duplicate"])
        let strange = StoreEvent("PRICE_INCREASE/PENDING", "2026-11-10", ["plan": "paid", "expires": "2026-12-01"])
        #expect(try await database.psql.apply(strange)["outcome"] == "ignored")
        #expect(try await database.psql.number("select count(*) from headroom.store_events") == 2)
        #expect(try await database.psql.number("select count(*) from headroom.subscribers") == 0)
        // Its user was nobody's, so nothing of a user is left that nobody could forget.
        #expect(try await database.psql.number("select count(user_id) from headroom.store_events") == 0)
    }

    @Test("is not one that came before the plan is known: it waits, and has its effect then")
    func waiting() async throws {
        let database = try await TestDatabase.fresh()
        try await database.stopClock(at: at("2026-11-11T12:00:00Z"))
        let answer = try await database.psql.apply(StoreEvent("cancelled", "2026-11-10"))
        #expect(answer == ["outcome": "waiting", "user": "\(user(1))"])
        // Still unknown: the trial begins with a message.
        #expect(try await database.consume(user(1))["plan"] == "trial")
        let bought = StoreEvent("purchased", "2026-11-01", ["plan": "paid", "expires": "2026-12-01"])
        #expect(try await database.psql.apply(bought)["state"] == "cancelled")
        #expect(try await database.consume(user(1))["plan"] == "paid")
    }
}
