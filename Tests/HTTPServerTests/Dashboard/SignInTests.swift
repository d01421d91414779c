import Engine
import LineProtocol
import TestSupport
import Testing
import Usage

@testable import HTTPServer

@Suite("Signing in")
struct SignInTests {
    @Test("opens a session under a random name, until it is closed or over")
    func sessions() {
        let table = SessionTable()
        let now = ContinuousClock.now
        let (ann, ben) = (table.open(tokenID: 1, at: now), table.open(tokenID: 2, at: now))
        #expect(RandomName.isOne(ann) && ann != ben)
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

    @Test("keeps so many sessions: with one more the oldest ends")
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

    @Test("A seal holds for its purpose, its browser and its process alone")
    func seals() {
        let (seals, others) = (FormSeal(), FormSeal())
        let seal = seals.seal("form", for: "ann")
        #expect(seals.isValid(seal, "form", for: "ann"))
        #expect(!seals.isValid(seal, "form", for: "ben"))
        #expect(!seals.isValid(seal, "reset", for: "ann"))
        #expect(!others.isValid(seal, "form", for: "ann"))
        #expect(!seals.isValid(seals.seal("forman", for: "n"), "form", for: "ann"))
        for wrong in ["", "0", String(seal.dropLast()), seal + "0", seal.uppercased(), String(seal.reversed())]
        where wrong != seal {
            #expect(!seals.isValid(wrong, "form", for: "ann"))
        }
    }

    @Test(
        "leads to pages of ours only",
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
    func destinations(path: String, destination: String) {
        #expect(Destination.checked(path) == destination)
    }

    @Test("A form is from us when the browser says so, or does not say")
    func origins() {
        #expect(Origin.isOurs(nil, fetchSite: "same-origin", authority: "h"))
        #expect(Origin.isOurs("null", fetchSite: "same-origin", authority: "h"))
        #expect(Origin.isOurs(nil, fetchSite: nil, authority: "h"))
        #expect(Origin.isOurs("null", fetchSite: nil, authority: "h"))
        #expect(Origin.isOurs("https://h:1", fetchSite: nil, authority: "h:1"))
        for site in ["cross-site", "same-site", "none", ""] {
            #expect(!Origin.isOurs(nil, fetchSite: site, authority: "h"))
        }
        for origin in ["https://evil.example", "http://h:2", "h:1", "https://h:1.evil.example"] {
            #expect(!Origin.isOurs(origin, fetchSite: nil, authority: "h:1"))
        }
    }

    @Test("A form's fields are read as browsers write them, or not at all")
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

    @Test("An action takes a number within its range, and a reason of one line")
    func actions() throws {
        #expect(
            try ActionForm.read(action: "grant", messages: " 1,000 ", reason: " why ")
                == ActionForm(action: .grant(messages: 1_000), reason: "why")
        )
        #expect(
            try ActionForm.read(action: "reset", messages: nil, reason: "why")
                == ActionForm(action: .reset, reason: "why")
        )
        for messages in [nil, "", "0", "1000001", "-1", "1.5", "1e3", "ten", "99999999999999999999"] {
            #expect(throws: ActionForm.Mistake.self) {
                try ActionForm.read(action: "grant", messages: messages, reason: "why")
            }
        }
        for reason in [
            nil, "", "  ", "a\nb", "\u{7F}", "a\u{202E}b", "\u{600}<", String(repeating: "x", count: 1_025),
        ] {
            #expect(throws: ActionForm.Mistake.self) {
                try ActionForm.read(action: "reset", messages: nil, reason: reason)
            }
        }
        #expect(throws: ActionForm.Mistake.self) { try ActionForm.read(action: "forget", messages: nil, reason: "why") }
    }

    @Test("What is typed again is cut by scalars, however many make a character")
    func cut() {
        #expect(ActionForm.cut("abc", to: 3) == "abc")
        #expect(ActionForm.cut("a" + String(repeating: "\u{301}", count: 9), to: 3).unicodeScalars.count == 3)
    }

    @Test("What became of an action is told to who did it, about that user")
    func results() {
        let seals = FormSeal()
        let (ann, ben) = (visitor("ann"), visitor("ben"))
        let other = DashboardFixtures.answer(1).user
        let user = ada
        let result = ActionResult(action: "grant", outcome: .done, number: 850)
        let sealed = result.sealed(user: user, visitor: ann, seals: seals)
        #expect(ActionResult(sealed, user: user, visitor: ann, seals: seals) == result)
        #expect(ActionResult(sealed, user: user, visitor: ben, seals: seals) == nil)
        #expect(ActionResult(sealed.replacing("850", with: "999"), user: user, visitor: ann, seals: seals) == nil)
        #expect(other == user)
        for broken in ["", "grant.done.850", "grant.done.850.-", "....", "grant.gone.850.-.\(sealed.suffix(64))"] {
            #expect(ActionResult(broken, user: user, visitor: ann, seals: seals) == nil)
        }
        #expect(result.notice.text.contains("850"))
    }

    @Test(
        "An action that was refused says why, each reason in its own sentence",
        arguments: [
            (EngineError.Code.unavailable, "could not be reached", "could not be reached"),
            (.overloaded, "Too many requests are waiting", "Too many requests are waiting"),
            (.notFound, "not in the application’s table", "not in the application’s table"),
            (.conflict, "granted another number of messages", "the service’s log has the reason"),
            (.badArgument, "The limit would be more than", "the service’s log has the reason"),
            (.expired, "the service’s log has the reason", "the service’s log has the reason"),
            (.internal, "the service’s log has the reason", "the service’s log has the reason"),
        ]
    )
    func refusals(code: EngineError.Code, ofGrant: String, ofReset: String) throws {
        let (seals, ann) = (FormSeal(), visitor("ann"))
        for (action, words) in [("grant", ofGrant), ("reset", ofReset)] {
            let result = ActionResult(action: action, outcome: .init(EngineError(code, "why")), number: 0)
            let sealed = result.sealed(user: ada, visitor: ann, seals: seals)
            let notice = try #require(ActionResult(sealed, user: ada, visitor: ann, seals: seals)).notice
            #expect(notice.kind == "bad" && notice.title == "Nothing was changed.")
            #expect(notice.text.contains(words), "\(action): \(notice.text)")
        }
    }

    @Test("An action promises nothing to a user whom it does not help")
    func caveats() throws {
        let revoked = DashboardFixtures.answer(12, state: .revoked, denialReason: .revoked, ends: "2026-12-17").snapshot
        let grant = ActionForm.Action.grant(messages: 5)
        #expect(ActionCaveat(grant, revoked) == .noAccess(.revoked))
        #expect(ActionCaveat(.reset, revoked) == .noAccess(.revoked))
        #expect(ActionCaveat(grant, DashboardFixtures.answer(800).snapshot) == nil)
        let unlimited = DashboardFixtures.answer(5, limit: nil).snapshot
        #expect(ActionCaveat(grant, unlimited) == .noLimit && ActionCaveat(.reset, unlimited) == nil)
        for caveat in [ActionCaveat.noLimit] + DenialReason.allCases.map(ActionCaveat.noAccess) {
            #expect(ActionCaveat(name: caveat.name) == caveat)
            let result = ActionResult(action: "grant", outcome: .done, number: 850, caveat: caveat)
            let sealed = result.sealed(user: ada, visitor: visitor("ann"), seals: FormSeal())
            #expect(sealed.contains(".\(caveat.name)."))
            #expect(result.notice.kind == "warning" && !result.notice.text.contains("from the next message on"))
        }
        #expect(ActionCaveat(name: "-") == nil)
    }

    private func visitor(_ name: String) -> Visitor {
        Visitor(name: name, identity: nil, permissions: .all, newCookie: nil)
    }
}
