import Testing

@testable import OperatorConsole

@Suite("Reports on users and periods")
struct UserTests {
    private static let april = "2026-04-01T00:00:00Z"
    private static let user = "7f1c0a52-3a51-4a7e-9d55-0b6a3f1f7c11"

    private func report(
        _ usage: String,
        _ history: [String] = [],
        _ allowances: [String] = []
    ) throws -> UserReport {
        UserReport(
            usage: try Record(["+OK user=\(UserTests.user) \(usage)"], status: "OK"),
            history: try [Record](history.map { "+PERIOD user=\(UserTests.user) \($0)" }, status: "PERIOD"),
            allowances: try [Record](allowances.map { "+ALLOWANCE period=2026-03 \($0)" }, status: "ALLOWANCE")
        )
    }

    @Test("a cancelled subscriber has a hold, a notice and the previous plan")
    func cancelled() throws {
        let report = try report(
            "plan=paid state=cancelled tier=gentle display=compact used=1640 held=2 limit=2000 remaining=358 "
                + "period=2026-03 resets=2026-04-01T00:00:00Z expires=2026-04-10T00:00:00Z previous_plan=pro "
                + #"label=Premium accessible="1640 of 2000 messages used this month" notice="Until \"then\".""#,
            ["period=2026-03 used=1640 limit=2000 tier=gentle", "period=trial used=7 limit=unlimited tier=silent"]
        )
        #expect(
            report.text == """
                user       7f1c0a52-3a51-4a7e-9d55-0b6a3f1f7c11
                plan       Premium (paid), cancelled, ends 2026-04-10T00:00:00Z, pro before
                usage      1640 of 2000 messages used this month
                held       2 reserved, counting as used
                remaining  358, the allowance comes back 2026-04-01T00:00:00Z
                tier       gentle, shown as compact
                notice     Until "then".

                period    used      limit  tier
                2026-03  1,640      2,000  gentle
                trial        7  unlimited  silent
                """
        )
        let text = try report.jsonLine()
        #expect(try json(text, "usage", "used") == "1640")
        #expect(try json(text, "usage", "notice") == #"Until "then"."#)
        #expect(try json(text, "history", "0", "period") == "2026-03")
        #expect(text.contains(#""limit":null"#))
    }

    @Test(
        "the plan has its end or its renewal, the allowance its reset, and missing access its reason",
        arguments: [
            // An allowance that comes back after the end of access, or with it, is not announced.
            ("state=cancelled expires=2026-03-10T00:00:00Z resets=\(april)", "remaining  800"),
            ("state=grace_period grace_until=2026-03-10T00:00:00Z resets=\(april)", "remaining  800"),
            ("state=cancelled expires=\(april) resets=\(april)", "remaining  800"),
            ("state=active resets=\(april) renews=\(april)", "plan       Premium (paid), active, renews \(april)"),
            (
                "state=active renews=\(april) next_plan=basic",
                "plan       Premium (paid), active, renews \(april) as basic"
            ),
            (
                "state=grace_period resets=\(april) grace_until=\(april)",
                "plan       Premium (paid), grace_period, in grace until \(april)"
            ),
            ("state=expired reason=expired", "no access  expired"),
        ]
    )
    func states(fields: String, line: String) throws {
        let report = try report(
            "plan=paid tier=silent display=hidden used=0 limit=800 remaining=800 period=2026-03 label=Premium "
                + "accessible=none \(fields)"
        )
        #expect(report.text.contains("\n\(line)\n"), "\(report.text)")
    }

    @Test("a user without messages has no table")
    func new() throws {
        let report = try report(
            "plan=pro state=active tier=silent display=hidden used=0 limit=unlimited remaining=unlimited period=2026-03 "
                + "label=Pro accessible=none"
        )
        #expect(report.text.contains("\nremaining  unlimited\n"))
        #expect(report.text.hasSuffix("\n\nno messages yet"))
    }

    @Test("models and members are a table, of the members those with the most messages; JSON has all")
    func parts() throws {
        let members = (1...22).map { "kind=member name=m\($0) used=\($0) limit=100 tier=silent weight=1" }
        let report = try report(
            "plan=team state=active tier=silent display=hidden used=0 limit=9 remaining=9 period=2026-03 label=Team "
                + "accessible=none",
            [],
            [
                "kind=model name=gpt-5* label=Large used=60 held=2 limit=unlimited tier=prominent window_limit=50 "
                    + "window_used=48 window_resets=2026-03-21T19:30:00Z weight=5 fallback=mini"
            ] + members
        )
        let lines = report.text.split(separator: "\n", omittingEmptySubsequences: false)
        let table = lines.drop { !$0.isEmpty }.dropFirst()
        let window = "48 of 50, until 2026-03-21T19:30:00Z"
        #expect(
            Array(table.prefix(3)) == [
                "part    name    used  held      limit  tier       window                                weight  fallback",
                "model   gpt-5*    60     2  unlimited  prominent  \(window)       5  mini",
                "member  m22       22     0        100  silent     -                                          1  -",
            ]
        )
        #expect(report.text.contains("\nmember  m3 ") && !report.text.contains("\nmember  m2 "))
        #expect(report.text.contains("\nand 2 more members\n\nno messages yet"))
        #expect(try json(try report.jsonLine(), "allowances", "0", "window_used") == "48")
        #expect(try json(try report.jsonLine(), "allowances", "22", "name") == "m22")
    }

    @Test("another reply is refused", arguments: ["+PONG", "OK", "+BLOCKED user=x", "+OK used", ""])
    func strangers(_ line: String) {
        #expect(throws: UnexpectedReply.self) { try Record([line], status: "OK") }
        #expect(throws: UnexpectedReply.self) { try Record(["+OK", "+OK"], status: "OK") }
    }

    @Test("a tier's share is of the period's users, rounded to a tenth of a percent")
    func period() throws {
        let line = "+REPORT period=2026-03 users=3000 messages=1234567 silent=1999 gentle=1 prominent=0 blocked=1000"
        let summary = PeriodSummary(try Record([line], status: "REPORT"))
        #expect(
            summary.text == """
                2026-03
                users          3,000
                messages   1,234,567
                silent         1,999  66.6 %
                gentle             1   0.0 %
                prominent          0   0.0 %
                blocked        1,000  33.3 %
                """
        )
        #expect(!summary.isEmpty)
        #expect(try json(try summary.record.jsonLine(), "messages") == "1234567")
    }

    @Test("a period without users is empty, and has no shares")
    func emptyPeriod() throws {
        let line = "+REPORT period=1999-01 users=0 messages=0 silent=0 gentle=0 prominent=0 blocked=0"
        let summary = PeriodSummary(try Record([line], status: "REPORT"))
        #expect(summary.isEmpty)
        #expect(summary.text.hasSuffix("blocked    0  -"))
    }

    @Test("an audit trail is a table without characters that control a terminal; JSON has the values unchanged")
    func story() throws {
        let story = AuditTrail([
            AuditTrail.Event(
                at: "2026-03-15T09:30:00Z",
                what: "reset",
                detail: "count 5 → 0",
                actor: "ann",
                reason: nil
            ),
            AuditTrail.Event(
                at: "2026-03-15T09:31:00Z",
                what: "grant",
                detail: nil,
                actor: "bob",
                reason: "\u{1B}[2Jgone\nnext"
            ),
        ])
        #expect(
            story.text(width: nil) == """
                at                    what   by   why            detail
                2026-03-15T09:30:00Z  reset  ann  -              count 5 → 0
                2026-03-15T09:31:00Z  grant  bob   [2Jgone next  -
                """
        )
        #expect(story.text(width: 80) == story.text(width: nil), "it fits")
        #expect(
            story.text(width: 24) == """
                at      2026-03-15T09:30:00Z
                what    reset
                by      ann
                detail  count 5 → 0

                at    2026-03-15T09:31:00Z
                what  grant
                by    bob
                why   [2Jgone next
                """
        )
        #expect(try story.events[0].jsonLine().contains(#""reason":null"#))
        #expect(try json(try story.events[1].jsonLine(), "reason") == "\u{1B}[2Jgone\nnext")
    }
}
