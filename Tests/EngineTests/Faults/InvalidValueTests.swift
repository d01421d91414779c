import Postgres
import TestSupport
import Testing
import Usage

@testable import Engine

/// A value that violates its table's constraint, written into one user's row after the constraint was dropped.
struct PlantedValue: Sendable, CustomTestStringConvertible {
    var table: String
    var column: String
    /// As an SQL literal.
    var value: String
    /// Whether the next message derives the user's row anew; otherwise it is counted in the row as it is.
    var isStale: Bool

    var name: String { "\(table).\(column)" }
    /// A read derives an outdated usage row anew, except for its count and limit.
    var isShown: Bool {
        switch column {
        case "updated_at", "released", "granted", "plan_limit": false
        case "message_count", "limit": true
        default: table != "message_usage" || !isStale
        }
    }
    var testDescription: String { "\(name) = \(value)\(isStale ? ", row out of date" : "")" }
}

@Suite("A value out of range in one user's row", .serialized)
struct InvalidValueTests {
    private static let instants = [
        "'infinity'", "'-infinity'", "'294276-12-31T23:59:59Z'", "'1999-12-31T23:59:59Z'", "'4713-01-01 BC'",
    ]
    private static let negatives = ["-1", "-2147483648"]
    private static let days = ["0", "32", "-32768", "32767"]

    private static func values(
        _ table: String,
        _ columns: [String],
        _ values: [String],
        stale: [Bool]
    ) -> [PlantedValue] {
        columns.flatMap { column in
            values.flatMap { value in
                stale.map { PlantedValue(table: table, column: column, value: value, isStale: $0) }
            }
        }
    }

    private static let ofUsageRows =
        values("message_usage", ["message_count", "held", "limit"], negatives, stale: [false, true])
        + values("message_usage", ["started_at", "resets_at", "expires_at"], instants, stale: [false, true])
        // Read by the slow path only.
        + values("message_usage", ["released", "granted", "plan_limit"], negatives, stale: [true])
        + values("message_usage", ["updated_at"], instants, stale: [true])

    private static let ofSubscriptions =
        values(
            "headroom.subscriptions",
            ["started_at", "expires_at", "grace_until", "billing_issue_at", "unsubscribed_at", "revoked_at"],
            instants,
            stale: [true]
        )
        + values("headroom.subscribers", ["trial_started_at", "trial_ends_at"], instants, stale: [true])
        + values("headroom.subscribers", ["anchor_day"], days, stale: [true])

    private static let ofPlans =
        values("headroom.plans", ["allowance"], negatives, stale: [true])
        + values("headroom.plans", ["gentle_percent", "prominent_percent"], negatives + ["2147483647"], stale: [true])

    /// The user with the invalid value; the others are in the same batches.
    private let ada = user(5)
    private let users = (0..<8).map { user($0) }

    private func withStore(_ body: @Sendable (TestDatabase, EngineHarness) async throws -> Void) async throws {
        let database = try await TestDatabase.fresh()
        let psql = database.psql
        try await psql.execute(
            """
            do $$
            declare
                v_rule record;
            begin
                for v_rule in
                    select
                        case contypid
                            when 0 then 'table ' || conrelid::regclass else 'domain ' || contypid::regtype
                        end as owner,
                        conname
                    from pg_constraint
                    where contype = 'c' and (connamespace = 'headroom'::regnamespace
                        or conrelid = 'public.message_usage'::regclass)
                loop
                    execute format('alter %s drop constraint %I', v_rule.owner, v_rule.conname);
                end loop;
            end
            $$;
            alter table message_usage
                disable trigger values_are_in_range, disable trigger record_manual_change;
            alter table headroom.message_keys disable trigger values_are_in_range;
            insert into headroom.plans (plan, label, cycle, allowance) values ('team', 'Team', 'monthly', 5000);
            """
        )
        for person in users {
            try await psql.execute("select set_plan('\(person)', '\(person == ada ? "team" : "paid")')")
        }
        let harness = EngineHarness(database.conninfo, lanes: 1)
        try await harness.running {
            for outcome in try await harness.execute(users.map { ($0, .consume(1)) }) { #expect(outcome.isAllowed) }
            try await body(database, harness)
        }
    }

    /// The row with the invalid value, and where its original is stored meanwhile.
    private func condition(_ table: String) -> String {
        table == "headroom.plans" ? "plan = 'team'" : "user_id = '\(ada)'"
    }

    private func plant(_ planted: PlantedValue, _ psql: Session) async throws {
        try await psql.execute(
            """
            drop table if exists public.kept, public.kept_row;
            create table public.kept_row as select usable_until from message_usage where user_id = '\(ada)';
            create table public.kept as select * from \(planted.table) where \(condition(planted.table));
            update \(planted.table) set "\(planted.column)" = \(planted.value) where \(condition(planted.table));
            """
        )
        if planted.isStale {
            try await psql.execute("update message_usage set usable_until = '-infinity' where user_id = '\(ada)'")
        }
    }

    private func repair(_ planted: PlantedValue, _ psql: Session) async throws {
        try await psql.execute(
            """
            update \(planted.table) set "\(planted.column)" = (select "\(planted.column)" from public.kept)
            where \(condition(planted.table));
            update message_usage set usable_until = (select usable_until from public.kept_row) where user_id = '\(ada)';
            """
        )
    }

    private func expectRefused(_ outcome: Outcome, _ planted: PlantedValue, _ request: String) {
        #expect(outcome.failure?.code == .internal, "\(planted.testDescription): \(request) was answered \(outcome)")
        let names = outcome.failure?.message.contains("\(planted.name) is out of range")
        #expect(names == true, "\(planted.testDescription): \(outcome.failure?.message ?? "")")
    }

    private func check(_ all: [PlantedValue]) async throws {
        try await withStore { database, harness in
            var counted = 1
            for planted in all {
                try await plant(planted, database.psql)
                let counts = try await harness.execute(users.map { ($0, .consume(1)) })
                counted += 1
                let reads = try await harness.execute(users.map { ($0, .usage) })
                for (index, person) in users.enumerated() {
                    if person == ada {
                        expectRefused(counts[index], planted, "CONSUME")
                        if planted.isShown { expectRefused(reads[index], planted, "USAGE") }
                    } else {
                        #expect(counts[index].isAllowed, "\(planted.testDescription): \(counts[index])")
                        #expect(reads[index].answer?.snapshot.used == counted)
                    }
                }
                try await repair(planted, database.psql)
                // Nothing was counted while the value was invalid.
                let after = try await harness.execute(ada, .usage)
                #expect(after.answer?.snapshot.used == 1, "\(planted.testDescription): \(after)")
            }
            for outcome in try await harness.execute(users.map { ($0, .consume(1)) }) { #expect(outcome.isAllowed) }
            let logged = harness.log.events.filter { $0.level >= .error }
            #expect(logged.allSatisfy { $0.message == "a value in the database is out of range" }, "\(logged)")
            for name in Set(all.map(\.name)) {
                let lines = logged.filter { $0.metadata.contains("\(name) is out of range") }
                #expect(lines.count == 1 && lines[0].metadata.contains("lists such rows"), "\(name): \(lines)")
            }
        }
    }

    @Test("of message_usage fails this user alone with -INTERNAL, is logged once, and can be corrected")
    func usageRows() async throws { try await check(Self.ofUsageRows) }

    @Test("of subscriptions or subscribers fails this user alone with -INTERNAL, and is logged once")
    func subscriptions() async throws { try await check(Self.ofSubscriptions) }

    @Test("of a plan fails the users of this plan alone with -INTERNAL, and is logged once")
    func plans() async throws { try await check(Self.ofPlans) }

    @Test("does not fail HISTORY, SUBSCRIBE, TOP and REPORT of others")
    func readings() async throws {
        try await withStore { database, harness in
            let planted = PlantedValue(table: "message_usage", column: "message_count", value: "-7", isStale: false)
            try await plant(planted, database.psql)
            let histories = try await harness.execute([(ada, .history(3)), (user(1), .history(3))])
            expectRefused(histories[0], planted, "HISTORY")
            #expect(histories[1].failure == nil)
            let subscribed = try await harness.outcomes(of: [
                harness.subscribe([user(1)], connection: 1), harness.subscribe([ada], connection: 2),
                harness.subscribe([user(2)], connection: 3),
            ])
            #expect(subscribed[0] == .subscribed && subscribed[2] == .subscribed)
            expectRefused(subscribed[1], planted, "SUBSCRIBE")
            guard case .periodUsages(let top) = try await harness.read(.top(.open, count: 20)),
                case .report(let report) = try await harness.read(.report(.open))
            else { return #expect(Bool(false), "no readings") }
            #expect(Set(top.map(\.user)) == Set(users.filter { $0 != ada }))
            #expect(report.messages == users.count - 1)
            // One that fails its statement as a whole must not fail the other subscriptions.
            try await repair(planted, database.psql)
            let other = PlantedValue(
                table: "headroom.subscriptions",
                column: "expires_at",
                value: "'infinity'",
                isStale: true
            )
            try await plant(other, database.psql)
            let again = try await harness.outcomes(of: [
                harness.subscribe([user(3)], connection: 1), harness.subscribe([ada], connection: 2),
                harness.subscribe([user(4)], connection: 3),
            ])
            #expect(again[0] == .subscribed && again[2] == .subscribed)
            expectRefused(again[1], other, "SUBSCRIBE")
        }
    }

    @Test("of a key fails a repetition with this key with -INTERNAL, and nothing is counted")
    func keys() async throws {
        try await withStore { database, harness in
            let key = messageKey("once")
            #expect(try await harness.execute(ada, .consume(1, key: key)).isAllowed)
            for (column, value) in [("used", "-1"), ("held", "-2147483648"), ("limit", "-5"), ("messages", "0")] {
                let planted = PlantedValue(table: "headroom.message_keys", column: column, value: value, isStale: false)
                try await plant(planted, database.psql)
                let outcomes = try await harness.execute([(ada, .consume(1, key: key)), (user(1), .consume(1))])
                expectRefused(outcomes[0], planted, "CONSUME key=")
                #expect(outcomes[1].isAllowed)
                try await repair(planted, database.psql)
            }
            let replay = try await harness.execute(ada, .consume(1, key: key)).answer
            #expect(replay?.isRepeated == true && replay?.snapshot.used == 2)
        }
    }

    @Test("that is read after a change's commit does not lose the lane's receipt, and the change is made")
    func afterChange() async throws {
        try await withStore { database, harness in
            try await plant(
                PlantedValue(table: "message_usage", column: "limit", value: "-5", isStale: false),
                database.psql
            )
            let reset = try await harness.execute(ada, .resetUsage(nil))
            #expect(reset.failure?.code == .internal)
            #expect(reset.failure?.message.contains("was carried out") == true, "\(reset)")
            let row = "message_usage where user_id = '\(ada)'"
            #expect(try await database.psql.number("select message_count from \(row)") == 0)
            for _ in 0..<3 {
                for outcome in try await harness.execute(users.filter { $0 != ada }.map { ($0, .consume(1)) }) {
                    #expect(outcome.isAllowed)
                }
            }
            #expect(!harness.log.events.contains { $0.message.contains("receipt") })
        }
    }

    @Test("is rejected when a result is decoded, whatever its type")
    func decoding() async throws {
        let psql = try await TestDatabase.fresh().psql
        let column = StoredColumn("message_usage", "limit")
        let states = try await psql.run { connection in
            let result = try connection.query(
                """
                select 'infinity'::timestamptz, '-infinity'::timestamptz, '294276-12-31'::timestamptz,
                    '4713-01-01 BC'::timestamptz, null::timestamptz, -1, (-2147483648)::integer, null::integer,
                    9223372036854775807, -1::bigint, '2000-01-01T00:00:00Z'::timestamptz, 2147483647
                """,
                deadline: .now + waitLimit
            )
            func refusal(_ decode: () throws(PostgresError) -> Void) -> SQLState? {
                do throws(PostgresError) {
                    try decode()
                    return nil
                } catch { return error.sqlState }
            }
            var states = (0...4).map { place in
                refusal { () throws(PostgresError) in _ = try result.instant(0, place, of: column) }
            }
            states += (5...7).map { place in
                refusal { () throws(PostgresError) in _ = try result.count(0, place, of: column) }
            }
            states += (8...9).map { place in
                refusal { () throws(PostgresError) in _ = try result.sum(0, place, of: column) }
            }
            states.append(refusal { () throws(PostgresError) in _ = try result.instant(0, 10, of: column) })
            states.append(refusal { () throws(PostgresError) in _ = try result.count(0, 11, of: column) })
            return states
        }
        #expect(states == Array(repeating: .invalidStoredValue, count: 10) + [nil, nil])
    }
}
