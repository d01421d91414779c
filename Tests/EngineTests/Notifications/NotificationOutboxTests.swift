import Postgres
import TestSupport
import Testing
import Usage

@testable import Engine

@Suite("The outbox of notifications")
struct NotificationOutboxTests {
    private func fresh() async throws -> TestDatabase { try await .fresh(at: at("2026-11-10T12:00:00Z")) }

    private func outbox(_ database: TestDatabase) -> NotificationOutbox {
        NotificationOutbox(
            EngineConfiguration(
                database: DatabaseTopology(database.conninfo),
                requestTimeout: waitLimit,
                connectTimeout: waitLimit
            ),
            logger: .silent
        )
    }

    private func running(_ outboxes: NotificationOutbox..., body: () async throws -> Void) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for outbox in outboxes { group.addTask { await outbox.run() } }
            defer { for outbox in outboxes { outbox.close() } }
            try await body()
        }
    }

    /// A user on a plan of 800 messages a month.
    private func subscribe(_ user: UserID, used: Int, _ psql: Session) async throws {
        try await psql.execute(
            "select set_plan('\(user)', 'paid'); select increment_and_check_usage('\(user)', \(used))"
        )
    }

    private func recorded(_ psql: Session) async throws -> [String] {
        try await psql.rows(
            "select user_id, billing_period, plan, tier from headroom.notifications order by created_at, user_id, tier"
        )
    }

    @Test("has one notification for each tier that was found, once, whoever records it")
    func once() async throws {
        let database = try await fresh()
        let psql = database.psql
        let (one, other) = (outbox(database), outbox(database))
        try await running(one, other) {
            try await subscribe(ada, used: 639, psql)
            #expect(try await one.record([ada]) == 0)
            try await psql.execute("select increment_and_check_usage('\(ada)', 1)")
            let counts = try await withThrowingTaskGroup(of: Int.self) { group in
                for outbox in [one, other] { group.addTask { try await outbox.record([ada, ada, user(9)]) } }
                return try await group.reduce(0, +)
            }
            #expect(counts == 1)
            try await psql.execute("select increment_and_check_usage('\(ada)', 160)")
            #expect(try await other.record([ada]) == 1)
            #expect(try await one.record([ada]) == 0)
            // The tier between them was passed unseen.
            #expect(try await recorded(psql) == ["\(ada)|2026-11|paid|blocked", "\(ada)|2026-11|paid|gentle"])
        }
    }

    @Test("describes the user's usage with the names of the HTTP API")
    func body() async throws {
        let database = try await fresh()
        let outbox = outbox(database)
        try await running(outbox) {
            try await subscribe(ada, used: 640, database.psql)
            _ = try await outbox.record([ada])
            let due = try #require(try await outbox.due(atMost: 16))
            #expect(
                due.map(\.body) == [
                    """
                    {"type":"usage.crossed","timestamp":"2026-11-10T12:00:00Z","data":{"user":"\(ada)","plan":"paid",\
                    "state":"active","period":"2026-11","allowance":"period","tier":"gentle","used":640,"held":0,"limit":800,\
                    "remaining":160,"resets":"2026-12-01T00:00:00Z"}}
                    """
                ]
            )
            #expect(due.map(\.attempts) == [0] && due[0].sentAt == 1_794_312_000)
        }
    }

    @Test("finds by a sweep what was counted by SQL or changed by hand, and nothing for those without access")
    func sweep() async throws {
        let database = try await fresh()
        let psql = database.psql
        let outbox = outbox(database)
        try await running(outbox) {
            for number: UInt64 in 1...40 { try await subscribe(user(number), used: number % 2 == 0 ? 640 : 10, psql) }
            #expect(try await outbox.sweep() == 20)
            #expect(try await outbox.sweep() == 0)
            // By a limit that an operator lowers, and by a change of the plan.
            try await psql.execute(#"update message_usage set "limit" = 10 where user_id = '\#(user(1))'"#)
            #expect(try await outbox.sweep() == 1)
            #expect(try await recorded(psql).contains("\(user(1))|2026-11|paid|blocked"))
            try await psql.execute("update headroom.plans set gentle_percent = 1 where plan = 'paid'")
            #expect(try await outbox.sweep() == 19)
            try await psql.execute(
                "select set_plan('\(user(3))', 'pro', 'expired', p_expires => '2026-11-09T00:00:00Z')"
            )
            #expect(try await outbox.sweep() == 0)
        }
    }

    @Test("has no second one after a reset or a grant in the same period, but in the next one, and on another plan")
    func periods() async throws {
        let database = try await fresh()
        let psql = database.psql
        let outbox = outbox(database)
        try await running(outbox) {
            try await subscribe(ada, used: 800, psql)
            #expect(try await outbox.record([ada]) == 1)
            try await psql.execute("select reset_usage('\(ada)'); select increment_and_check_usage('\(ada)', 640)")
            #expect(try await outbox.record([ada]) == 0)
            try await psql.execute("select grant_messages('\(ada)', 100, 'sorry')")
            #expect(try await outbox.record([ada]) == 0)
            try await psql.execute(
                "update headroom.test_clock set at = '2026-12-02T00:00:00Z'; select increment_and_check_usage('\(ada)', 640)"
            )
            #expect(try await outbox.record([ada]) == 1)
            try await psql.execute(
                """
                insert into headroom.plans (plan, label, cycle, allowance) values ('small', 'Small', 'monthly', 700);
                select set_plan('\(ada)', 'small')
                """
            )
            #expect(try await outbox.record([ada]) == 1)
            #expect(
                try await recorded(psql) == [
                    "\(ada)|2026-11|paid|blocked", "\(ada)|2026-12|paid|gentle", "\(ada)|2026-12|small|gentle",
                ]
            )
            try await psql.execute("update headroom.plans set plan = 'tiny' where plan = 'small'")
            #expect(try await outbox.record([ada]) == 0)
            #expect(try await psql.number("forget_user('\(ada)')") ?? 0 > 3)
            #expect(try await recorded(psql) == [])
        }
    }

    @Test("gives what is due to one session, and to another when that has ended")
    func oneDelivers() async throws {
        let database = try await fresh()
        let (one, other) = (outbox(database), outbox(database))
        try await running(other) {
            try await running(one) {
                try await subscribe(ada, used: 640, database.psql)
                _ = try await other.record([ada])
                #expect(try await one.due(atMost: 16)?.count == 1)
                #expect(try await one.due(atMost: 16)?.count == 1)
                #expect(try await other.due(atMost: 16) == nil)
            }
            try await waitUntil("the lock is free") { try await other.due(atMost: 16) != nil }
        }
    }

    @Test("names the session of a login without rights that has the lock")
    func stranger() async throws {
        let database = try await fresh()
        let name = "stranger_\(UInt32.random(in: 0 ... .max))"
        try await database.psql.execute("create role \(name) login")
        let eve = try await Session.open(database.conninfo + " user=\(name)")
        let process = try #require(try await eve.number("select pg_backend_pid()"))
        try await eve.execute("select pg_advisory_lock(hashtext('headroom notifications'))")
        let outbox = outbox(database)
        try await running(outbox) {
            #expect(try await outbox.due(atMost: 16) == nil)
            #expect(outbox.stranger == "process \(process) of \(name)")
            try await eve.execute("select pg_advisory_unlock_all()")
            #expect(try await outbox.due(atMost: 16) == [])
            #expect(outbox.stranger == nil)
        }
        try await database.psql.execute("drop role \(name)")
    }

    @Test("keeps the results of attempts, and tries again when it is time")
    func attempts() async throws {
        let database = try await fresh()
        let psql = database.psql
        let outbox = outbox(database)
        func status() async throws -> String? {
            try await psql.text("select concat_ws(' ', status, attempts, problem) from headroom.notifications")
        }
        try await running(outbox) {
            try await subscribe(ada, used: 640, psql)
            _ = try await outbox.record([ada])
            let due = try #require(try await outbox.due(atMost: 16)?.first)
            try await outbox.write([.init(id: due.id, attemptsBefore: 0, problem: "HTTP 500", delay: .seconds(5))])
            #expect(try await status() == "p 1 HTTP 500")
            #expect(try await outbox.due(atMost: 16) == [])
            #expect(try await outbox.backlog() == .init(pending: 1, oldestSeconds: 0))
            // The same result again, by an instance that had it too.
            try await outbox.write([.init(id: due.id, attemptsBefore: 0, problem: nil, delay: nil)])
            #expect(try await status() == "p 1 HTTP 500")
            try await psql.execute("update headroom.test_clock set at = at + interval '5 seconds'")
            #expect(try await outbox.due(atMost: 16)?.map(\.attempts) == [1])
            #expect(try await outbox.backlog() == .init(pending: 1, oldestSeconds: 5))
            try await outbox.write([.init(id: due.id, attemptsBefore: 1, problem: "HTTP 404", delay: nil)])
            #expect(try await status() == "f 2 HTTP 404")
            let conninfo = database.conninfo
            let replayed = try await onThread { try NotificationLog(database: DatabaseTopology(conninfo)).replay(nil) }
            #expect(replayed == [due.id])
            #expect(try await outbox.due(atMost: 16)?.map(\.id) == [due.id])
            try await outbox.write([.init(id: due.id, attemptsBefore: 0, problem: nil, delay: nil)])
            #expect(try await status() == "d 1")
            #expect(try await outbox.backlog() == .init(pending: 0, oldestSeconds: 0))
        }
    }

    @Test("is emptied of a period's notifications thirty days after its end")
    func pruning() async throws {
        let database = try await fresh()
        let psql = database.psql
        let outbox = outbox(database)
        try await running(outbox) {
            try await subscribe(ada, used: 640, psql)
            try await psql.execute("select increment_and_check_usage('\(user(2))', 100)")
            #expect(try await outbox.sweep() == 2)
            try await psql.execute("update headroom.test_clock set at = '2026-12-31T00:00:00Z'")
            #expect(try await psql.number("headroom.prune_notifications()") == 0)
            try await psql.execute("update headroom.test_clock set at = '2026-12-31T00:00:01Z'")
            #expect(try await psql.number("headroom.prune_notifications()") == 1)
            // A trial has no end after which it begins again.
            #expect(try await recorded(psql) == ["\(user(2))|trial|trial|blocked"])
            #expect(try await psql.sqlState(of: "select headroom.prune_notifications('1 day')") == "22023")
        }
    }

    // MARK: Windows, models and members

    private let member = "\(user(7))"

    /// Ada's team has 100 messages a month and 50 in two hours. The large models have 20 a month and 5 an hour, and
    /// each member 30.
    private func team(_ psql: Session) async throws {
        try await psql.execute(
            """
            insert into headroom.plans (plan, label, cycle, allowance, window_messages, window_seconds)
            values ('team', 'Team', 'monthly', 100, 50, 7200);
            insert into headroom.plan_limits (plan, kind, name, label, allowance, window_messages, window_seconds) values
                ('team', 'model', 'large*', 'Large', 20, 5, 3600), ('team', 'member', '*', null, 30, null, null);
            select set_plan('\(ada)', 'team');
            """
        )
    }

    private func count(_ messages: Int, _ psql: Session, _ parts: String = "") async throws {
        let arguments = parts.isEmpty ? "" : ", " + parts
        let status = "select status from increment_and_check_usage('\(ada)', \(messages)\(arguments))"
        #expect(try await psql.rows(status) == ["ALLOWED"])
    }

    /// The allowances and their tiers.
    private func crossed(_ psql: Session) async throws -> [String] {
        try await psql.rows(
            "select concat_ws(' ', allowance, part, tier) from headroom.notifications order by created_at, 1"
        )
    }

    @Test("has one for each allowance that is crossed, beside the account's, which names the model or the member")
    func parts() async throws {
        let database = try await fresh()
        let psql = database.psql
        let outbox = outbox(database)
        try await running(outbox) {
            try await team(psql)
            // The account has crossed a tier already, of its window.
            try await count(40, psql)
            #expect(try await outbox.record([ada]) == 1)
            try await count(4, psql, "p_model => 'large-2', p_member => '\(member)'")
            #expect(try await outbox.record([ada]) == 1)
            #expect(try await outbox.record([ada]) == 0)
            try await psql.execute("update headroom.test_clock set at = at + interval '2 hours'")
            try await count(20, psql, "p_member => '\(member)'")
            #expect(try await outbox.record([ada]) == 1)
            try await count(16, psql)
            #expect(try await outbox.record([ada]) == 1)
            let found = ["model large* gentle", "window gentle", "member \(member) gentle", "period gentle"]
            #expect(try await crossed(psql) == found)
            let bodies = try await outbox.due(atMost: 16)?.map(\.body).joined() ?? ""
            for named in [
                """
                "allowance":"model","model":"large*","model_label":"Large","window_seconds":3600,"tier":"gentle","used":4,\
                "held":0,"limit":5,"remaining":1,"resets":"2026-11-10T13:00:00Z"
                """,
                """
                "allowance":"member","member":"\(member)","tier":"gentle","used":24,"held":0,"limit":30,"remaining":6,\
                "resets":"2026-12-01T00:00:00Z"
                """,
            ] { #expect(bodies.contains(named)) }
        }
    }

    @Test("has one for each window, and one for the period where that is the fuller limit")
    func windows() async throws {
        let database = try await fresh()
        let psql = database.psql
        let outbox = outbox(database)
        try await running(outbox) {
            try await team(psql)
            for expected in [1, 1, 1, 1, 0] {
                try await count(expected == 0 ? 1 : 4, psql, "p_model => 'large-2'")
                #expect(try await outbox.record([ada]) == expected)
                try await psql.execute("update headroom.test_clock set at = at + interval '1 hour'")
            }
            let rows = "select tier, count(*) from headroom.notifications where window_opened_at is"
            #expect(try await psql.rows("\(rows) not null group by 1") == ["gentle|3"])
            #expect(try await psql.rows("\(rows) null group by 1") == ["gentle|1"])
            // A window that outlasts the month is the same one.
            for (now, messages, expected) in [("2026-11-30T23:59:00Z", 40, 1), ("2026-12-01T00:01:00Z", 1, 0)] {
                try await psql.execute("update headroom.test_clock set at = '\(now)'")
                try await count(messages, psql)
                #expect(try await outbox.record([ada]) == expected)
            }
        }
    }

    @Test("finds models and members by a sweep, and nothing of a period that is over")
    func sweptParts() async throws {
        let database = try await fresh()
        let psql = database.psql
        let outbox = outbox(database)
        try await running(outbox) {
            try await team(psql)
            try await count(4, psql, "p_model => 'large', p_member => '\(member)'")
            #expect(try await outbox.sweep() == 1)
            #expect(try await outbox.sweep() == 0)
            try await psql.execute("update headroom.plan_limits set allowance = 5 where kind = 'member'")
            #expect(try await outbox.sweep() == 1)
            #expect(try await crossed(psql) == ["member \(member) gentle", "model large* gentle"])
            try await psql.execute("update headroom.plan_limits set allowance = 4 where kind = 'member'")
            try await psql.execute("update headroom.test_clock set at = '2026-12-01T00:00:00Z'")
            #expect(try await outbox.sweep() == 0)
            #expect(try await psql.number("forget_user('\(member)')") ?? 0 > 0)
            #expect(try await crossed(psql) == ["model large* gentle"])
        }
    }

    @Test("gets the users of a divided database")
    func buckets() async throws {
        let database = try await fresh()
        try await database.beginDivision(into: 8)
        try await database.divideUsers(to: BucketMap.movedMaximum)
        let outbox = outbox(database)
        try await running(outbox) {
            let users = (1...40).map { user($0) }
            for user in users { try await subscribe(user, used: 640, database.psql) }
            #expect(try await outbox.record(users) == 40)
        }
    }
}

@Suite("Users who have crossed into a tier")
struct CrossedUsersTests {
    @Test("are remembered by lanes if notifications are sent, each once, whichever request it was")
    func lanes() async throws {
        let database = try await TestDatabase.fresh()
        try await database.psql.execute("update headroom.plans set allowance = 10 where plan = 'trial'")
        let harness = EngineHarness(database.conninfo, sendsNotifications: true)
        let crossed = try #require(harness.engine.crossedUsers)
        try await harness.running {
            _ = try await harness.execute([
                (user(1), .consume(8)), (user(2), .consume(7)),
                (user(3), .reserve(8, key: messageKey("a"), ttlSeconds: 60)),
            ])
            #expect(Set(crossed.take(atMost: 10)) == [user(1), user(3)])
            _ = try await harness.execute([(user(1), .consume(1)), (user(2), .check(1)), (user(2), .consume(3))])
            #expect(Set(crossed.take(atMost: 10)) == [user(2)])
            #expect(crossed.take(atMost: 10) == [])
        }
        #expect(EngineHarness(database.conninfo).engine.crossedUsers == nil)
    }

    @Test("are remembered if a model crosses into a tier that the account has")
    func models() async throws {
        let database = try await TestDatabase.fresh()
        try await database.psql.execute(
            """
            update headroom.plans set allowance = 10 where plan = 'trial';
            insert into headroom.plan_limits (plan, kind, name, allowance) values ('trial', 'model', 'large', 5)
            """
        )
        let harness = EngineHarness(database.conninfo, sendsNotifications: true)
        let crossed = try #require(harness.engine.crossedUsers)
        let large = MessageParts(model: "large")
        try await harness.running {
            _ = try await harness.execute(user(1), .consume(3).inParts(large))
            _ = try await harness.execute(user(1), .consume(5))
            #expect(crossed.take(atMost: 10) == [user(1)])
            let answer = try #require(try await harness.execute(user(1), .consume(1).inParts(large)).answer)
            #expect(answer.crossed == nil && answer.snapshot.tier == .gentle)
            #expect(crossed.take(atMost: 10) == [user(1)])
        }
    }

    @Test("are taken in parts, and dropped where there is no room")
    func bounded() {
        let crossed = CrossedUsers()
        crossed.add((0..<20_000).map { user($0) })
        let first = crossed.take(atMost: 256)
        #expect(first.count == 256)
        let rest = crossed.take(atMost: 100_000)
        #expect(rest.count == 16_384 - 256 && Set(rest).isDisjoint(with: first))
    }
}
