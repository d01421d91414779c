import Postgres
import TestSupport
import Testing
import Usage

@testable import Engine

@Suite("A period that a caller of increment_and_check_usage names")
struct PeriodLabelTests {
    private func fresh(now: String = "2026-11-10T12:00:00Z") async throws -> TestDatabase {
        try await .fresh(at: at(now))
    }

    /// The SQLSTATE of a call; nil if the message was counted.
    private func error(_ label: String, _ psql: Session, _ user: UserID = ada) async throws -> String? {
        try await psql.sqlState(of: "select increment_and_check_usage('\(user)', '\(label)', 5)")
    }

    private func allowed(_ label: String, _ limit: Int, _ psql: Session) async throws -> String? {
        try await psql.text("select increment_and_check_usage('\(ada)', '\(label)', \(limit)) ->> 'allowed'")
    }

    @Test(
        "for a user with a plan is the open one, this month or trial, and no other",
        arguments: [("paid", "2026-10"), ("trial", "trial"), ("free", "free")]
    )
    func known(plan: String, open: String) async throws {
        let psql = try await fresh().psql
        try await psql.execute(
            """
            update headroom.plans set allowance = 100 where plan = 'free';
            select set_plan('\(ada)', '\(plan)', p_anchor => 25);
            """
        )
        for label in [open, "2026-11", "trial"] { #expect(try await error(label, psql) == nil, "\(label)") }
        for label in ["2026-12", "2026-09", "9999-12", "open", "pro", "made_up", "", "2026-13"] {
            #expect(try await error(label, psql) == "22023", "\(label)")
        }
        #expect(try await psql.rows("select billing_period, message_count from message_usage") == ["\(open)|3"])
    }

    @Test(
        "for a user with a weekly or daily plan is the open one, this month or trial, and no other",
        arguments: [("weekly", "2026-W46"), ("daily", "2026-11-11")]
    )
    func local(cycle: String, open: String) async throws {
        // In Tokyo it is 01:00 of the next day.
        let psql = try await fresh(now: "2026-11-10T16:00:00Z").psql
        try await psql.execute(
            """
            insert into headroom.plans (plan, label, cycle, allowance, time_zone)
            values ('local', 'Local', '\(cycle)', 100, 'Asia/Tokyo');
            select set_plan('\(ada)', 'local', p_anchor => 25);
            """
        )
        for label in [open, "2026-11", "trial"] { #expect(try await error(label, psql) == nil, "\(label)") }
        let others = ["2026-11-10", "2026-11-11", "2026-11-12", "2026-W45", "2026-W46", "2026-W47", "2026-10", "local"]
        for label in others where label != open { #expect(try await error(label, psql) == "22023", "\(label)") }
        #expect(try await psql.rows("select billing_period, message_count from message_usage") == ["\(open)|3"])
    }

    @Test("for a user without one is a month, a week or a day that has begun, or a plan that never resets")
    func unknown() async throws {
        let psql = try await fresh().psql
        // Up to 14 hours ahead of UTC the next day has begun.
        let known = ["2026-11", "2026-10", "2019-01", "trial", "2026-W46", "2019-W01", "2026-11-11", "2019-02-28"]
        for label in known { #expect(try await error(label, psql) == nil, "\(label)") }
        let others = [
            "2026-12", "9999-12", "open", "paid", "made_up", "", "Trial", "2026-W47", "2026-11-12", "2019-02-29",
            "2019-W53", "2026-W00",
        ]
        for label in others { #expect(try await error(label, psql) == "22023", "\(label)") }
        #expect(try await psql.number("select count(*) from message_usage") == known.count)
    }

    @Test("by an end user is neither a month of the past nor one of the future, so that end users create few rows")
    func endUser() async throws {
        let database = try await fresh(now: "2026-11-30T12:00:00Z")
        let session = try await Session.open(database.conninfo)
        try await session.execute("set role headroom_user; set request.jwt.claim.sub = '\(ada)'")
        // On the last day of November it is December east of UTC.
        let known = ["2026-11", "2026-12", "2026-10", "trial", "2026-11-30", "2026-12-01", "2026-W49"]
        for label in known { #expect(try await error(label, session) == nil, "\(label)") }
        let others = [
            "2026-09", "2020-01", "2027-01", "open", "made_up", "2026-11-29", "2026-12-02", "2026-W48", "2026-W50",
        ]
        for label in others { #expect(try await error(label, session) == "22023", "\(label)") }
    }

    @Test("allows no message that CONSUME would refuse, whichever it is")
    func refusal() async throws {
        let psql = try await fresh().psql
        try await psql.execute("select increment_and_check_usage('\(ada)', 'trial', 500) from generate_series(1, 100)")
        for label in ["trial", "2026-11"] { #expect(try await allowed(label, 800, psql) == "false", "\(label)") }
        try await psql.execute("select set_plan('\(ada)', 'paid')")
        for label in ["trial", "2026-11"] { #expect(try await allowed(label, 800, psql) == "true", "\(label)") }
    }
}
