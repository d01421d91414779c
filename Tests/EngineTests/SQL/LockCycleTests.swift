import TestSupport
import Testing
import Usage

@testable import Engine

/// Sessions that lock the same users must not deadlock. Users are locked in the order of their ids, and of each user
/// the subscriber before the usage (docs/decisions/0003-lock-order.md).
@Suite("Two sessions that lock the same users")
struct LockCycleTests {
    private func countStatement(_ user: UserID) -> String {
        "select headroom.count_messages('\(user)', 1, null, null, 'trial')"
    }

    @Test("a billing event does not insert a later user while it waits for an earlier one")
    func newUser() async throws {
        let database = try await TestDatabase.fresh()
        let (known, new) = (user(1), user(2))
        try await database.psql.execute(countStatement(known))
        let batch = try await Session.open(database.conninfo)
        let notification = try await Session.open(database.conninfo)
        try await batch.execute("begin; \(countStatement(known))")
        let merged: [String: Any & Sendable] = ["kind": "merged", "identities": ["\(known)", "\(new)"]]
        let second = Task { try await notification.ingest(Event("merge", "2026-11-06", by: ["\(known)"], merged)) }
        try await database.waitUntilBlocked(1)
        try await batch.execute("\(countStatement(new)); commit")
        #expect(try await second.value["outcome"] == "applied")
        #expect(try await database.count(of: new, period: "trial") == 1)
        #expect(try await database.deadlocks == 0)
    }

    @Test("a first message locks its user before a row that a grant has inserted")
    func grantedRow() async throws {
        let database = try await TestDatabase.fresh()
        let granted = user(1)
        try await database.psql.execute("select grant_messages('\(granted)', 5)")
        let holder = try await Session.open(database.conninfo)
        let batch = try await Session.open(database.conninfo)
        let notification = try await Session.open(database.conninfo)
        try await holder.execute("begin; select from message_usage where user_id = '\(granted)' for update")
        let first = Task { try await batch.execute(countStatement(granted)) }
        try await database.waitUntilBlocked(1)
        let second = Task { try await notification.execute("select headroom.lock_subscriber('\(granted)')") }
        try await database.waitUntilBlocked(2)
        try await holder.execute("commit")
        try await first.value
        try await second.value
        #expect(try await database.psql.number("select sum(message_count) from message_usage") == 1)
        #expect(try await database.deadlocks == 0)
    }

    @Test("a first message locks its user before such a row also if a USAGE comes first")
    func grantedRowAndUsage() async throws {
        let database = try await TestDatabase.fresh()
        let granted = user(1)
        try await database.psql.execute("select grant_messages('\(granted)', 5)")
        let notification = try await Session.open(database.conninfo)
        try await notification.execute("begin; select headroom.lock_subscriber('\(granted)')")
        let engine = EngineHarness(database.conninfo)
        try await engine.running {
            let slots = engine.submit([(granted, .usage), (granted, .consume(1))])
            try await database.waitUntilBlocked(1)
            try await notification.execute("select from message_usage where user_id = '\(granted)' for update; commit")
            #expect(try await engine.outcomes(of: slots).map { $0.answer?.snapshot.used } == [0, 1])
        }
        #expect(try await database.psql.number("select sum(message_count) from message_usage") == 1)
        #expect(try await database.deadlocks == 0)
    }

    @Test("a first message does not lock a row that a grant inserts meanwhile before its user")
    func grantedMeanwhile() async throws {
        let database = try await TestDatabase.fresh()
        let granted = user(1)
        let holder = try await Session.open(database.conninfo)
        let batch = try await Session.open(database.conninfo)
        let notification = try await Session.open(database.conninfo)
        // The message reads this table after it has looked for a usage row.
        try await holder.execute("begin; lock table headroom.plan_revision in access exclusive mode")
        let first = Task { try await batch.execute(countStatement(granted)) }
        try await database.waitUntilBlocked(1)
        try await database.psql.execute(
            "insert into message_usage (user_id, billing_period, message_count) values ('\(granted)', 'trial', 3)"
        )
        try await notification.execute("begin; select headroom.lock_subscriber('\(granted)')")
        try await holder.execute("commit")
        try await waitUntil("the message waits for the subscriber") {
            try await database.psql.number(
                """
                select count(*) from pg_stat_activity
                where datname = current_database() and wait_event = 'transactionid'
                """
            ) == 1
        }
        try await notification.execute("select from message_usage where user_id = '\(granted)' for update; commit")
        try await first.value
        #expect(try await database.psql.number("select message_count from message_usage") == 4)
        #expect(try await database.deadlocks == 0)
    }

    @Test("a billing event releases its locked customer if others were merged meanwhile")
    func mergedCustomers() async throws {
        let database = try await TestDatabase.fresh()
        func lock(_ names: String) -> String { "select headroom.lock_customer('{\(names)}')" }
        for name in ["a", "b", "c"] { try await database.psql.execute(lock(name)) }
        let merging = try await Session.open(database.conninfo)
        let holder = try await Session.open(database.conninfo)
        let late = try await Session.open(database.conninfo)
        let other = try await Session.open(database.conninfo)
        try await merging.execute("begin; \(lock("a,b"))")
        try await holder.execute("begin; \(lock("c"))")
        let holderPID = try #require(try await holder.number("select pg_backend_pid()"))
        // It finds the customers of b and c. When it has locked that of c, b already belongs to the customer of a.
        let first = Task { try await late.execute(lock("b,c")) }
        try await database.waitUntilBlocked(1)
        try await merging.execute("commit")
        try await waitUntil("the first session waits for the other holder") {
            try await database.psql.number(
                """
                select count(*) from pg_stat_activity as waiting
                cross join lateral unnest(pg_blocking_pids(waiting.pid)) as blocking (pid)
                where waiting.datname = current_database() and blocking.pid = \(holderPID)
                """
            ) == 1
        }
        let second = Task { try await other.execute(lock("a,c")) }
        try await database.waitUntilBlocked(2)
        try await holder.execute("commit")
        try await first.value
        try await second.value
        #expect(try await database.psql.number("select count(*) from headroom.customers") == 1)
        #expect(try await database.deadlocks == 0)
    }

    @Test("a plan set while its user is being forgotten belongs to a new user")
    func forgotten() async throws {
        let database = try await TestDatabase.fresh()
        let person = user(1)
        try await database.psql.execute("select set_plan('\(person)', 'paid')")
        let forgetting = try await Session.open(database.conninfo)
        let setting = try await Session.open(database.conninfo)
        try await forgetting.execute("begin; select headroom.lock_subscriber('\(person)')")
        let plan = Task { try await setting.execute("select set_plan('\(person)', 'pro')") }
        try await database.waitUntilBlocked(1)
        try await forgetting.execute("select forget_user('\(person)'); commit")
        try await plan.value
        #expect(try await database.psql.rows("select plan from headroom.subscriptions") == ["pro"])
        #expect(try await database.deadlocks == 0)
    }

    @Test("two first messages of a subscriber without a plan do not deadlock")
    func firstMessages() async throws {
        let database = try await TestDatabase.fresh()
        let subscriber = user(1)
        try await database.psql.execute("insert into headroom.subscribers (user_id) values ('\(subscriber)')")
        let holder = try await Session.open(database.conninfo)
        let batches = [try await Session.open(database.conninfo), try await Session.open(database.conninfo)]
        // The lock of a foreign key check. Only "for update" waits for it.
        try await holder.execute(
            "begin; select from headroom.subscribers where user_id = '\(subscriber)' for key share"
        )
        let messages = batches.map { batch in Task { try await batch.execute(countStatement(subscriber)) } }
        try await waitUntil("both have counted or wait") {
            try await database.psql.number(
                """
                select count(*) from pg_stat_activity
                where datname = current_database() and query like 'select headroom.count_messages%'
                    and (wait_event_type = 'Lock' or state = 'idle')
                """
            ) == 2
        }
        try await holder.execute("commit")
        for message in messages { try await message.value }
        #expect(try await database.psql.number("select sum(message_count) from message_usage") == 2)
        #expect(try await database.deadlocks == 0)
    }
}
