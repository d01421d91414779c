import Postgres
import TestSupport
import Testing
import Usage

@testable import Engine

@Suite("A row that the database does not keep", .serialized)
struct DiscardedRowTests {
    /// The user with the row; the others are in the same batches.
    private let ada = user(5)
    private let users = (0..<16).map { user($0) }

    private func withStore(_ body: @Sendable (TestDatabase, EngineHarness) async throws -> Void) async throws {
        let database = try await TestDatabase.fresh()
        let harness = EngineHarness(database.conninfo, lanes: 1)
        try await harness.running { try await body(database, harness) }
    }

    /// Creates a trigger that replaces each written row of Ada's.
    private func plant(_ events: String, on table: String, _ body: String, _ psql: Session) async throws {
        try await psql.execute(
            """
            create function headroom.test_trigger() returns trigger language plpgsql as $$ begin \(body) end $$;
            create trigger test_trigger before \(events) on \(table)
                for each row when (new.user_id = '\(ada)') execute function headroom.test_trigger();
            """
        )
    }

    /// Sends one message of each user. All but Ada's are counted.
    private func send(_ harness: EngineHarness) async throws -> Outcome {
        let outcomes = try await harness.execute(users.map { ($0, .consume(1)) })
        for (index, outcome) in outcomes.enumerated() where users[index] != ada {
            #expect(outcome.isAllowed, "user \(index): \(outcome)")
        }
        return outcomes[5]
    }

    @Test(
        "because of a trigger fails this user's requests alone, and the log says what to do",
        arguments: ["insert", "update"]
    )
    func discarded(event: String) async throws {
        try await withStore { database, harness in
            if event == "update" { _ = try await send(harness) }
            try await plant(event, on: "message_usage", "return null;", database.psql)
            for _ in 0..<2 {
                let failure = try await send(harness).failure
                #expect(failure == .discardedRow)
            }
            #expect(harness.log.count(of: "the database discards a row that Headroom writes") == 1)
            #expect(harness.log.events.contains { $0.metadata.contains(#"\d message_usage lists them"#) })
            try await database.psql.execute("drop trigger test_trigger on message_usage")
            #expect(try await send(harness).answer?.snapshot.used == (event == "update" ? 2 : 1))
        }
    }

    @Test("is found in no other bucket: a trigger refuses one")
    func bucketTrigger() async throws {
        let psql = try await TestDatabase.fresh().psql
        try await psql.execute("select set_plan('\(ada)', 'paid')")
        let statements = [
            "update message_usage set bucket = 1",
            "insert into headroom.subscribers (bucket, user_id) values (1, gen_random_uuid())",
        ]
        for statement in statements { #expect(try await psql.sqlState(of: statement) == "23514", "\(statement)") }
    }

    @Test("in another bucket, after its trigger was disabled, fails this user's requests alone")
    func otherBucket() async throws {
        try await withStore { database, harness in
            try await database.psql.execute(
                """
                alter table message_usage disable trigger bucket_is_of_the_user;
                insert into message_usage (user_id, billing_period, bucket) values ('\(ada)', 'trial', 1);
                """
            )
            let failure = try await send(harness).failure
            #expect(failure?.code == .internal)
            #expect(failure?.message.contains("message_usage.bucket is out of range") == true)
            #expect(harness.log.events.contains { $0.metadata.contains("lists such rows") })
            try await database.psql.execute("update message_usage set bucket = 0")
            #expect(try await send(harness).answer?.snapshot.used == 1)
        }
    }

    @Test(
        "because a trigger raises an error that is worth another attempt, always, fails this user's requests alone",
        arguments: ["unique_violation", "serialization_failure"]
    )
    func repeatedError(condition: String) async throws {
        try await withStore { database, harness in
            try await plant(
                "insert or update",
                on: "message_usage",
                "raise exception 'never' using errcode = '\(condition)';",
                database.psql
            )
            #expect(try await send(harness).failure != nil)
        }
    }

    @Test("does not repeat a function without end")
    func functions() async throws {
        let psql = try await TestDatabase.fresh().psql
        try await plant("insert", on: "headroom.subscribers", "return null;", psql)
        for call in ["set_plan('\(ada)', 'paid')", "forget_user('\(ada)')"] {
            #expect(try await psql.sqlState(of: "select \(call)") == "HR011", "\(call)")
        }
        try await psql.execute("drop trigger test_trigger on headroom.subscribers")
        try await psql.execute(
            """
            create trigger test_trigger before insert on headroom.customer_names
                for each row execute function headroom.test_trigger();
            """
        )
        #expect(try await psql.sqlState(of: "select headroom.lock_customer(array['user:\(ada)'])") == "HR011")
        try await psql.execute("drop trigger test_trigger on headroom.customer_names")
        try await psql.execute(
            """
            create trigger test_trigger before insert on message_usage
                for each row execute function headroom.test_trigger();
            """
        )
        #expect(try await psql.sqlState(of: "select grant_messages('\(ada)', 5)") == "HR011")
        #expect(try await psql.number("select count(*) from headroom.grants") == 0)
    }
}
