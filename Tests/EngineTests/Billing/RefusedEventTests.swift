import TestSupport
import Testing
import Usage

@testable import Engine

@Suite("An event whose effect the database refuses")
struct RefusedEventTests: BillingSuite {
    private func pack(_ id: String, by person: String) -> Event {
        Event(id, "2026-11-20", by: [person], ["kind": "granted", "transaction": "G \(id)", "product": "pack"])
    }

    private func stored(_ database: TestDatabase) async throws -> [String] {
        try await database.psql.rows(
            "select id, outcome, user_id, attempts, effects from headroom.billing_events order by happened_at, id"
        )
    }

    /// Refuses each row of `message_usage`: a statement that adds the cause, what the problem names, and the statement
    /// that removes the cause.
    private static let causes = [
        (
            """
            create table people (id uuid primary key);
            alter table message_usage add constraint of_people foreign key (user_id) references people;
            """, "people", "insert into people values ('\(user(1))')"
        ),
        (
            #"alter table message_usage add constraint few check ("limit" < 10)"#, "\"few\"",
            "alter table message_usage drop constraint few"
        ),
        (
            """
            create function refuse() returns trigger language plpgsql as
            $$ begin raise exception 'not on a Friday'; end $$;
            create trigger refuse before insert on message_usage for each row execute function refuse();
            """, "not on a Friday", "drop trigger refuse on message_usage"
        ),
        (
            """
            create function overflow() returns trigger language plpgsql as
            $$ begin new.message_count := 2147483647 + new."limit"; return new; end $$;
            create trigger overflow before insert on message_usage for each row execute function overflow();
            """, "integer out of range", "drop trigger overflow on message_usage"
        ),
    ]

    @Test("is recorded as failed with the reason, and is applied by a replay once the cause is gone", arguments: causes)
    func recorded(cause: String, reason: String, remedy: String) async throws {
        let database = try await fresh()
        try await database.psql.execute(cause)
        for attempt in 1...2 {
            let answer = try await database.psql.ingest(pack("p", by: ada))
            #expect(answer["outcome"] == "failed" && answer["user"] == ada)
            #expect(answer["problem"]?.contains(reason) == true, "\(answer)")
            #expect(try await stored(database) == ["p|failed|\(ada)|\(attempt)|[]"])
        }
        #expect(try await database.psql.number("select count(*) from headroom.message_purchases") == 0)
        let trail = "select detail from audit_trail where user_id = '\(ada)'"
        #expect(try await database.psql.rows(trail) == ["happened 2026-11-20T00:00:00Z, outcome failed"])
        try await database.psql.execute(remedy)
        #expect(try await database.psql.replay(pack("p", by: ada))["outcome"] == "applied")
        #expect(try await database.psql.text("select granted_messages from headroom.message_purchases") == "50")
        #expect(try await database.psql.ingest(pack("p", by: ada))["outcome"] == "duplicate")
    }

    @Test("does not refuse later events of the customer")
    func later() async throws {
        let database = try await fresh()
        try await database.psql.ingest(Event("b", "2026-11-05", by: [ada], Event.purchased("T")))
        #expect(try await database.consume(user(1), 10)["status"] == "ALLOWED")
        try await database.psql.execute(
            """
            create table people (id uuid primary key);
            insert into people values ('\(ada)');
            alter table message_usage add constraint of_people foreign key (user_id) references people;
            """
        )
        let transfer = Event("t", "2026-11-06", by: [bob], Event.transferred(from: [ada], to: [bob]))
        let refused = try await database.psql.ingest(transfer)
        #expect(refused["outcome"] == "failed" && refused["user"] == bob)
        let cancelled = Event("c", "2026-11-07", ["kind": "cancelled", "transaction": "T"])
        let answer = try await database.psql.ingest(cancelled)
        #expect(answer["outcome"] == "applied" && answer["user"] == ada && answer["state"] == "cancelled")
        try await database.psql.execute("insert into people values ('\(bob)')")
        #expect(try await database.psql.replay(transfer)["outcome"] == "applied")
        #expect(try await database.psql.rows("select user_id from headroom.subscriptions") == [bob])
        #expect(try await database.usage(user(2))["used"] == "10")
        try await database.psql.execute("select forget_user('\(bob)')")
        #expect(try await database.psql.number("select count(*) from headroom.billing_events where id = 't'") == 1)
    }

    @Test("stays applied if a replay is refused")
    func replayed() async throws {
        let database = try await fresh()
        try await database.psql.ingest(pack("p", by: ada))
        let before = try await stored(database)
        try await database.psql.execute("delete from message_usage")
        try await database.psql.execute(Self.causes[2].0)
        var other = pack("other", by: ada)
        other.id = "p"
        #expect(try await database.psql.replay(other).isEmpty)
        #expect(try await stored(database) == before)
    }

    @Test("is recorded for later, and thrown, if the installation is at fault")
    func installation() async throws {
        let database = try await fresh()
        try await database.psql.execute("alter function headroom.write_customer(jsonb) rename to taken_away")
        await #expect(throws: (any Error).self) { try await database.psql.ingest(pack("p", by: ada)) }
        #expect(try await stored(database) == ["p|failed|\(ada)|1|[]"])
        try await database.psql.execute("alter function headroom.taken_away(jsonb) rename to write_customer")
        #expect(try await database.psql.ingest(pack("p", by: ada))["outcome"] == "applied")
    }

    @Test("is not recorded if a repetition may overcome the error")
    func transient() async throws {
        let database = try await fresh()
        try await database.psql.execute(
            """
            create function away() returns trigger language plpgsql as
            $$ begin raise exception 'later' using errcode = 'lock_not_available'; end $$;
            create trigger away before insert on message_usage for each row execute function away();
            """
        )
        await #expect(throws: (any Error).self) { try await database.psql.ingest(pack("p", by: ada)) }
        #expect(try await stored(database) == [])
    }
}

@Suite("The events that are read for an event")
struct ReadEventTests {
    private let ada = "\(user(1))"

    /// The ids of the events that are read for the customer's next event.
    private func read(_ database: TestDatabase) async throws -> [String] {
        try await database.psql.rows(
            """
            select events.value ->> 'id'
            from json_array_elements(headroom.lock_and_read_customer(
                'revenuecat', 'next', false, '{user:\(ada)}', '{\(ada)}', '{}', '{}'
            ) -> 'events') as events
            order by 1
            """
        )
    }

    @Test("are those with effects, and of those that only name the customer the newest of each kind")
    func withoutEffects() async throws {
        let database = try await TestDatabase.fresh(at: at("2026-11-20T12:00:00Z"))
        try await database.psql.mapProducts()
        try await database.psql.ingest(Event("bought", "2026-11-05", by: [ada], Event.purchased("T")))
        for number in 1...3 {
            try await database.psql.ingest(Event("alone \(number)", "2026-11-06", by: [ada]))
            try await database.psql.ingest(Event("both \(number)", "2026-11-0\(number)", by: [ada, digest(1)]))
        }
        try await database.psql.ingest(Event("other", "2026-11-01", by: [ada, digest(2)]))
        #expect(try await read(database) == ["both 3", "bought", "other"])
        // The names are still the customer's.
        let cancelled = Event("c", "2026-11-07", by: [digest(1)], ["kind": "cancelled", "transaction": "T"])
        #expect(try await database.psql.ingest(cancelled)["user"] == ada)
    }
}
