import Engine
import LineProtocol
import TestSupport
import Testing
import Usage

@testable import HTTPServer

@Suite("Signing in")
struct SignInTests {
    @Test("a session has a random identifier and ends when it is closed or expires")
    func sessions() {
        let table = SessionTable()
        let now = ContinuousClock.now
        let (ann, ben) = (table.open(tokenID: 1, at: now), table.open(tokenID: 2, at: now))
        #expect(RandomIdentifier.isWellFormed(ann) && ann != ben)
        #expect(table.tokenID(of: ann, at: now) == 1)
        #expect(table.tokenID(of: ben, at: now) == 2)
        #expect(table.tokenID(of: ann, at: now + SessionTable.lifetime - .seconds(1)) == 1)
        #expect(table.tokenID(of: ann, at: now + SessionTable.lifetime) == nil)
        table.close(ann)
        #expect(table.tokenID(of: ann, at: now) == nil)
        #expect(table.tokenID(of: ben, at: now) == 2)
        for wrong in [
            "", "x", String(ben.dropLast()), ben + "0", ben.uppercased() + "", String(repeating: "0", count: 64),
        ] where wrong != ben {
            #expect(table.tokenID(of: wrong, at: now) == nil)
        }
    }

    @Test("beyond the capacity the oldest session ends")
    func capacity() {
        let table = SessionTable()
        let now = ContinuousClock.now
        let first = table.open(tokenID: 1, at: now)
        let second = table.open(tokenID: 2, at: now + .seconds(1))
        for number in 2..<SessionTable.capacity { _ = table.open(tokenID: Int64(number), at: now + .seconds(2)) }
        #expect(table.tokenID(of: first, at: now) == 1)
        _ = table.open(tokenID: 9, at: now + .seconds(3))
        #expect(table.tokenID(of: first, at: now) == nil)
        #expect(table.tokenID(of: second, at: now) == 2)
    }

    @Test("a signature is valid for its text, its browser and its process only")
    func signatures() {
        let (signer, other) = (BrowserSigner(), BrowserSigner())
        let signature = signer.signature(of: "form", for: "ann")
        #expect(signer.csrfToken(for: "ann") == signature && signer.isValid(csrfToken: signature, for: "ann"))
        #expect(signer.isValid(signature, of: "form", for: "ann"))
        #expect(!signer.isValid(signature, of: "form", for: "ben"))
        #expect(!signer.isValid(signature, of: "reset", for: "ann"))
        #expect(!other.isValid(signature, of: "form", for: "ann"))
        #expect(!signer.isValid(signer.signature(of: "forman", for: "n"), of: "form", for: "ann"))
        for wrong in ["", "0", String(signature.dropLast()), signature + "0", signature.uppercased()]
        where wrong != signature { #expect(!signer.isValid(wrong, of: "form", for: "ann")) }
    }

    @Test(
        "signing in returns to pages of the dashboard only",
        arguments: [
            ("/dashboard/users/7f1c0a52", "/dashboard/users/7f1c0a52"),
            ("/dashboard?period=2026-11", "/dashboard?period=2026-11"),
            ("/dashboard", "/dashboard"), ("", "/dashboard"), ("//evil.example", "/dashboard"),
            ("https://evil.example", "/dashboard"),
            ("/dashboard//evil.example", "/dashboard"), ("/dashboard\\evil", "/dashboard"),
            ("/dashboard\r\nX: y", "/dashboard"),
            ("/dashboards", "/dashboard"), ("/v1/usage", "/dashboard"), ("/dashboard/sign-in", "/dashboard"),
            ("/dashboard/sign-out", "/dashboard"), ("/dashboard/live", "/dashboard"),
            ("/dashboard?" + String(repeating: "a", count: 300), "/dashboard"),
        ]
    )
    func returnPaths(path: String, returnPath: String) { #expect(ReturnPath.validated(path) == returnPath) }

    @Test("a form is accepted unless the browser reports another site")
    func origins() {
        #expect(RequestOrigin.isSameOrigin(nil, fetchSite: "same-origin", authority: "h"))
        #expect(RequestOrigin.isSameOrigin("null", fetchSite: "same-origin", authority: "h"))
        #expect(RequestOrigin.isSameOrigin(nil, fetchSite: nil, authority: "h"))
        #expect(RequestOrigin.isSameOrigin("null", fetchSite: nil, authority: "h", allowsNull: true))
        #expect(!RequestOrigin.isSameOrigin("null", fetchSite: nil, authority: "h"))
        #expect(RequestOrigin.isSameOrigin("https://h:1", fetchSite: nil, authority: "h:1"))
        for site in ["cross-site", "same-site", "none", ""] {
            #expect(!RequestOrigin.isSameOrigin(nil, fetchSite: site, authority: "h"))
        }
        for origin in ["https://evil.example", "http://h:2", "h:1", "https://h:1.evil.example"] {
            #expect(!RequestOrigin.isSameOrigin(origin, fetchSite: nil, authority: "h:1"))
        }
    }

    @Test("a form is decoded as browsers encode it, or rejected")
    func fields() {
        func parse(_ text: String) -> [String: String]? { FormFields.parse(text.utf8) }
        #expect(parse("") == [:])
        #expect(parse("a=1&b=x+y&c=%26%3D%C3%A4") == ["a": "1", "b": "x y", "c": "&=ä"])
        #expect(parse("a=&b==") == ["a": "", "b": "="])
        for broken in [
            "a", "a=1&", "a=%", "a=%4", "a=%zz", "a=%ff", "a=1&a=2", (0...16).map { "\($0)=" }.joined(separator: "&"),
        ] {
            #expect(parse(broken) == nil, "\(broken)")
        }
    }

    @Test("an action needs a number in range and a reason of one line")
    func actions() throws {
        #expect(
            try ActionForm.read(action: "grant", ["messages": " 1,000 ", "reason": " why "])
                == ActionForm(action: .grant(messages: 1_000), reason: "why")
        )
        #expect(try ActionForm.read(action: "reset", ["reason": "why"]).action == .reset(nil))
        #expect(try ActionForm.read(action: "forget", ["reason": "why"]) == ActionForm(action: .forget, reason: "why"))
        for messages in [nil, "", "0", "1000001", "-1", "1.5", "1e3", "ten", "99999999999999999999"] {
            var fields = ["reason": "why"]
            fields["messages"] = messages
            #expect(throws: ActionForm.InvalidField.self) { try ActionForm.read(action: "grant", fields) }
        }
        for reason in [
            nil, "", "  ", "a\nb", "\u{7F}", "a\u{202E}b", "\u{600}<", String(repeating: "x", count: 1_025),
        ] {
            #expect(throws: ActionForm.InvalidField.self) {
                try ActionForm.read(action: "reset", reason.map { ["reason": $0] } ?? [:])
            }
        }
        #expect(throws: ActionForm.InvalidField.self) {
            try ActionForm.read(action: "delete", ["reason": "why"])
        }
    }

    private func setPlan(_ plan: String, state: String = "", expires: String = "") throws -> ActionForm.Action {
        let fields = ["plan": plan, "state": state, "expires": expires, "reason": "why"]
        return try ActionForm.read(action: "plan", fields, plans: Plan.initial).action
    }

    @Test("a plan is one of the list, with a state that it can have and an end")
    func planFields() throws {
        let fields = try setPlan("paid", state: "cancelled", expires: " 2026-12-24 ")
        guard case .setPlan(let plan) = fields else {
            Issue.record("not a plan: \(fields)")
            return
        }
        #expect(
            plan.change(of: ada)
                == PlanChange(user: ada, plan: "paid", state: .cancelled, expiresAt: at("2026-12-24T00:00:00Z"))
        )
        // A confirmed form has the same fields again.
        let again = Dictionary(uniqueKeysWithValues: plan.fields.map { ($0.name, $0.value) })
        #expect(try setPlan("paid", state: again["state"] ?? "", expires: again["expires"] ?? "") == fields)
        guard case .setPlan(let initial) = try setPlan("trial") else { return }
        #expect(initial.state == nil && initial.expiresAt == nil)
        for (plan, state, expires, field) in [
            ("gold", "", "", "plan"), ("", "", "", "plan"), ("Paid", "", "", "plan"), ("paid", "happy", "", "state"),
            ("trial", "active", "", "state"), ("free", "cancelled", "", "state"), ("paid", "", "tomorrow", "expires"),
            ("paid", "", "2026-02-30", "expires"), ("paid", "", "infinity", "expires"),
        ] {
            let error = #expect(throws: ActionForm.InvalidField.self) {
                try setPlan(plan, state: state, expires: expires)
            }
            #expect(error?.field == field)
        }
        // Without the list, the database decides.
        let unread = ["plan": "gold", "reason": "why"]
        #expect(throws: Never.self) { try ActionForm.read(action: "plan", unread, plans: nil) }
    }

    @Test("rejected input is truncated by scalars")
    func truncation() {
        #expect(ActionForm.truncated("abc", toScalars: 3) == "abc")
        #expect(
            ActionForm.truncated("a" + String(repeating: "\u{301}", count: 9), toScalars: 3).unicodeScalars.count == 3
        )
    }

    @Test("a result is valid for its viewer and its user only")
    func results() {
        let signer = BrowserSigner()
        let (ann, ben) = (viewer("ann"), viewer("ben"))
        let other = DashboardFixtures.answer(1).user
        let user = ada
        let result = ActionResult(action: "grant", outcome: .done, limit: 850)
        let signed = result.signed(user: user, viewer: ann, signer: signer)
        #expect(ActionResult(signed, user: user, viewer: ann, signer: signer) == result)
        #expect(ActionResult(signed, user: user, viewer: ben, signer: signer) == nil)
        #expect(ActionResult(signed.replacing("850", with: "999"), user: user, viewer: ann, signer: signer) == nil)
        #expect(other == user)
        for broken in ["", "grant.done.850", "grant.done.850.-", "....", "grant.gone.850.-.\(signed.suffix(64))"] {
            #expect(ActionResult(broken, user: user, viewer: ann, signer: signer) == nil)
        }
        #expect(result.notice.text.contains("850"))
    }

    @Test(
        "a failed action gives its reason",
        arguments: [
            (EngineError.Code.unavailable, "could not be reached", "could not be reached"),
            (.overloaded, "Too many requests are waiting", "Too many requests are waiting"),
            (.notFound, "not in the application’s table", "not in the application’s table"),
            (.conflict, "granted another number of messages", "the service’s log has the reason"),
            (.badArgument, "The limit would be more than", "the service’s log has the reason"),
        ]
    )
    func failures(code: EngineError.Code, grantText: String, resetText: String) throws {
        let (signer, ann) = (BrowserSigner(), viewer("ann"))
        for (action, text) in [("grant", grantText), ("reset", resetText)] {
            let result = ActionResult(action: action, outcome: .init(EngineError(code, "why")), limit: 0)
            let signed = result.signed(user: ada, viewer: ann, signer: signer)
            let notice = try #require(ActionResult(signed, user: ada, viewer: ann, signer: signer)).notice
            #expect(notice.kind == "bad" && notice.title == "Nothing was changed.")
            #expect(notice.text.contains(text), "\(action): \(notice.text)")
        }
    }

    @Test("an action that fails by a bug may have been carried out", arguments: ["grant", "reset"])
    func unknownOutcome(action: String) {
        let notice = ActionResult(action: action, outcome: .init(EngineError(.internal, "why")), limit: 0).notice
        #expect(notice.kind == "warning" && notice.title == "The outcome is unknown.")
        #expect(notice.text.contains("service’s log") && notice.text.contains("before you try again"))
    }

    @Test("the confirmation of a plan says what it replaces, and whether access ends")
    func planConfirmation() throws {
        func page(_ fields: PlanFields) -> ConfirmPage {
            ActionConfirmation(
                form: ActionForm(action: .setPlan(fields), reason: "why"),
                user: ada,
                snapshot: DashboardFixtures.answer(12).snapshot,
                actor: "token:ann",
                planLabel: "Premium"
            )
            .page(DashboardFixtures.frame("Set the plan"), key: "k")
        }
        let plans = Plan.initial
        let plain = page(try PlanFields(["plan": "paid"], plans: plans))
        #expect(plain.question == "Set the plan to Premium (paid)?" && plain.caveat == nil)
        #expect(plain.effects.joined().contains("also those of stores") && plain.consequence.contains("token:ann"))
        let ends = page(try PlanFields(["plan": "paid", "state": "cancelled", "expires": "2026-12-24"], plans: plans))
        #expect(ends.question.hasSuffix("state cancelled, until 24 December 2026, 00:00 UTC?") && ends.caveat == nil)
        #expect(ends.fields.map(\.name) == ["plan", "state", "expires"])
        let past = page(try PlanFields(["plan": "paid", "expires": "2026-11-01"], plans: plans))
        #expect(past.caveat?.title == "The user will have no access.")
        #expect(page(try PlanFields(["plan": "paid", "state": "revoked"], plans: plans)).caveat != nil)
    }

    @Test("a result of a plan or of forgetting says what it means")
    func moreResults() {
        let set = ActionResult(action: "plan", outcome: .done, limit: 800)
        #expect(set.notice.kind == "good" && set.notice.text.contains("The limit of this period is now 800."))
        let without = ActionResult(action: "plan", outcome: .done, limit: 800, caveat: .noAccess(.revoked))
        #expect(
            without.notice.kind == "warning" && without.notice.title == "The plan is set, and the user has no access."
        )
        let forgotten = ActionResult(action: "forget", outcome: .done, limit: 0)
        #expect(forgotten.notice.text.contains("A trial that was started stays spent."))
        #expect(ActionResult(action: "plan", outcome: .notFound, limit: 0).notice.text.contains("no such plan"))
        let missing = ActionResult(action: "forget", outcome: .unavailable, limit: 0)
        #expect(missing.notice.kind == "bad" && missing.notice.text.contains("could not be reached"))
    }

    @Test("the result of a replay is valid for its viewer and its event only")
    func replayResults() throws {
        let (signer, ann) = (BrowserSigner(), viewer("ann"))
        let name = BillingEventLog.Name(source: "stripe", id: "evt_1")
        let signed = ReplayResult(outcome: "applied").signed(name, viewer: ann, signer: signer)
        #expect(ReplayResult(signed, name, viewer: ann, signer: signer)?.notice.title == "Applied.")
        let other = BillingEventLog.Name(source: "stripe", id: "evt_2")
        #expect(ReplayResult(signed, other, viewer: ann, signer: signer) == nil)
        #expect(ReplayResult(signed, name, viewer: viewer("ben"), signer: signer) == nil)
        #expect(ReplayResult("failed.\(signed.suffix(64))", name, viewer: ann, signer: signer) == nil)
        for (outcome, kind) in [("waiting", "good"), ("failed", "bad"), ("refused", "bad"), ("overloaded", "bad")] {
            #expect(ReplayResult(outcome: outcome).notice.kind == kind)
        }
        #expect(ReplayResult(SessionPool.Failure.tooLate).notice.text.contains("could not be reached"))
    }

    @Test("an action that does not let the user send has a caveat")
    func caveats() throws {
        let revoked = DashboardFixtures.answer(12, state: .revoked, denialReason: .revoked, ends: "2026-12-17").snapshot
        let grant = ActionForm.Action.grant(messages: 5)
        #expect(ActionCaveat(grant, revoked) == .noAccess(.revoked))
        #expect(ActionCaveat(.reset(nil), revoked) == .noAccess(.revoked))
        #expect(ActionCaveat(grant, DashboardFixtures.answer(800).snapshot) == nil)
        let unlimited = DashboardFixtures.answer(5, limit: nil).snapshot
        #expect(ActionCaveat(grant, unlimited) == .noLimit && ActionCaveat(.reset(nil), unlimited) == nil)
        for caveat in [ActionCaveat.noLimit] + DenialReason.allCases.map(ActionCaveat.noAccess) {
            #expect(ActionCaveat(name: caveat.name) == caveat)
            let result = ActionResult(action: "grant", outcome: .done, limit: 850, caveat: caveat)
            let signed = result.signed(user: ada, viewer: viewer("ann"), signer: BrowserSigner())
            #expect(signed.contains(".\(caveat.name)."))
            #expect(result.notice.kind == "warning" && !result.notice.text.contains("with the next message"))
        }
        #expect(ActionCaveat(name: "-") == nil)
    }

    private func viewer(_ cookie: String) -> Viewer {
        Viewer(cookie: cookie, identity: nil, permissions: .all, newCookie: nil)
    }
}
