import Postgres
import TestSupport
import Testing
import Usage

@testable import Engine

@Suite("A period that a caller of increment_and_check_usage names")
struct PeriodLabelTests {
    private func fresh(now: String = "2026-11-10T12:00:00Z") async throws -> TestDatabase {
        let database = try await TestDatabase.fresh()
        try await database.stopClock(at: at(now))
        return database
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

    @Test("for a user without one is a month that has begun, or a plan that never resets")
    func unknown() async throws {
        let psql = try await fresh().psql
        for label in ["2026-11", "2026-10", "2019-01", "trial"] {
            #expect(try await error(label, psql) == nil, "\(label)")
        }
        for label in ["2026-12", "9999-12", "open", "paid", "made_up", "", "Trial"] {
            #expect(try await error(label, psql) == "22023", "\(label)")
        }
        #expect(try await psql.number("select count(*) from message_usage") == 4)
    }

    @Test("by an end user is neither a month of the past nor one of the future, so that end users create few rows")
    func endUser() async throws {
        let database = try await fresh(now: "2026-11-30T12:00:00Z")
        let session = try await Session.open(database.conninfo)
        try await session.execute("set role headroom_user; set request.jwt.claim.sub = '\(ada)'")
        // On the last day of November it is December east of UTC.
        for label in ["2026-11", "2026-12", "2026-10", "trial"] {
            #expect(try await error(label, session) == nil, "\(label)")
        }
        for label in ["2026-09", "2020-01", "2027-01", "open", "made_up"] {
            #expect(try await error(label, session) == "22023", "\(label)")
        }
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
