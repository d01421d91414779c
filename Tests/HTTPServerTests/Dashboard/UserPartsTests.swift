import Engine
import Foundation
import TestSupport
import Testing
import Usage

@testable import HTTPServer

@Suite("Models and members on the page of a user")
struct UserPartsTests {
    private let library: PageLibrary

    init() throws { library = try PageLibrary() }

    private func html(members: Int = 2, mayChange: Bool = true, part: String? = nil) -> String {
        library.user(DashboardFixtures.account(members: members), mayChange: mayChange, part: part)
    }

    private func rows(_ page: String) -> [String] {
        let section = page.components(separatedBy: "id=\"parts-heading\"").last ?? ""
        return section.components(separatedBy: "</section>")[0].components(separatedBy: "<li>").dropFirst().map(\.self)
    }

    @Test("each has its numbers, a bar for each limit, its tier, what comes back when, its weight and its fallback")
    func content() throws {
        let rows = rows(html())
        #expect(rows.count == 4)
        for text in [
            "<bdi>mini*</bdi>", "<span class=\"tier blocked\">blocked</span>", "<strong>500 of 500</strong>",
            "resets <time datetime=\"2026-12-01T00:00:00Z\">", "When it is used up, nano is offered.",
            "class=\"blocked\"", "href=\"/dashboard/users/\(ada)?part=mini%2A#reset-part\"",
        ] {
            #expect(rows[0].contains(text), "\(text)")
        }
        for text in [
            "<bdi>Large</bdi>", "gpt-5</span>", "<strong>60</strong> messages in this period, without a limit</p>",
            "<strong>48 of 50</strong> messages in the window of 3 h, resets <time datetime=\"2026-11-21T19:30:00Z\">",
            "A message takes 5 of the user’s messages.", "class=\"prominent\"",
        ] {
            #expect(rows[1].contains(text), "\(text)")
        }
        #expect(rows[2].contains("Member") && rows[2].contains("<bdi>\(user(2))</bdi>"), "the fuller one comes first")
        #expect(rows[2].contains("<strong>1 of 100</strong> messages in this period, 3 held"))
        #expect(rows[2].contains("<rect class=\"held\""))
        let page = html()
        let places = ["usage-heading", "parts-heading", "texts-heading"].map { page.range(of: $0)?.lowerBound }
        #expect(places.allSatisfy { $0 != nil } && places.compactMap(\.self) == places.compactMap(\.self).sorted())
    }

    @Test("a plan without limits of models and members has no such section")
    func none() {
        #expect(!library.user().contains("Models and members"))
        var figures = DashboardFixtures.account()
        figures.allowances = .success([])
        #expect(library.user(figures).contains("No member has sent a message in this period."))
        figures.allowances = .failure(EngineError(.unavailable, "away"))
        #expect(!library.user(figures).contains("Models and members"))
        #expect(UserPresenter(figures: figures).isIncomplete && library.user(figures).contains("Database unavailable."))
    }

    @Test("of thousands of members, the fullest are shown, and each is found by the id")
    func search() {
        let all = html(members: 2_000)
        #expect(rows(all).count == 22 && all.contains("The fullest 20 of 2,000 members are shown."))
        #expect(rows(all)[2].contains("<bdi>\(user(2_000))</bdi>"))
        let one = html(members: 2_000, part: " \("\(user(7))".uppercased()) ")
        #expect(rows(one).count == 1 && rows(one)[0].contains("<bdi>\(user(7))</bdi>"))
        #expect(one.contains("Show all") && !one.contains("fullest 20"))
        let missing = "No model or member of this name has messages in this period."
        #expect(html(members: 3, part: "\(user(9))").contains(missing))
        #expect(rows(html(part: "mini-2026"))[0].contains("<bdi>mini*</bdi>"), "a model is found by its own name")
        let namespace = UserNamespace(user(5))
        var figures = DashboardFixtures.account()
        let named = UserID("ann@example.com", in: namespace)!
        figures.allowances = .success([
            ReportedAllowance(kind: .member, name: "\(named)", used: 1, held: 0, tier: .silent)
        ])
        let search = PartSearch("ann@example.com", in: namespace)
        let presenter = UserPresenter(figures: figures, partSearch: search)
        #expect(presenter.partsSection?.rows.map(\.label) == ["\(named)"])
    }

    @Test("the one that is shown alone can be reset, by a form that says which")
    func reset() throws {
        let page = html(part: "mini*")
        #expect(page.contains("<option value=\"\">All messages of the period</option>"))
        #expect(page.contains("<option value=\"model:mini*\" selected>Only the model mini*</option>"))
        #expect(!html().contains("reset-part\" name="), "without a search, all messages are reset")
        #expect(!html(mayChange: false).contains("Reset…"))
        let form = try ActionForm.read(action: "reset", ["reason": "why", "part": "model:mini*"])
        #expect(form.parts == MessageParts(model: ModelName.ofLimit(named: "mini*")))
        #expect(form.parts?.formValue == "model:mini*")
        let member = try ActionForm.read(action: "reset", ["reason": "why", "part": "member:\(user(7))"])
        #expect(member.parts == MessageParts(member: user(7)))
        #expect(try ActionForm.read(action: "reset", ["reason": "why", "part": ""]).action == .reset(nil))
        for part in ["mini", "model:", "model:a b", "model:*x", "member:ann", "window:*"] {
            #expect(throws: ActionForm.InvalidField.self) {
                try ActionForm.read(action: "reset", ["reason": "why", "part": part])
            }
        }
    }

    @Test("an open window of the one that is shown alone can be closed, and its count stays")
    func window() throws {
        let option = "<option value=\"model:gpt-5\" selected>Only the model Large</option>"
        let page = html(part: "gpt-5")
        #expect(page.components(separatedBy: option).count == 3, "to reset it, and to close its window")
        #expect(page.contains("<select id=\"window-part\" name=\"part\">\n<option value=\"model:gpt-5\""))
        #expect(!html(part: "mini*").contains("window-part"), "it has no window")
        let form = try ActionForm.read(action: "window", ["reason": "why", "part": "model:gpt-5"])
        #expect(form.action == .resetWindow(MessageParts(model: "gpt-5")))
        #expect(try ActionForm.read(action: "window", ["reason": "why"]).action == .resetWindow(nil))
        var counter = PartCounter()
        (counter.used, counter.windowUsed) = (60, 48)
        let confirmation = try confirmation("window", "gpt-5", counter)
        #expect(confirmation.question == "Close the window of the model Large, with 48 messages, that is open now?")
        #expect(confirmation.fields.map(\.value) == ["model:gpt-5"])
        let result = ActionResult(action: ActionResult.ofPart("window"), outcome: .done, limit: 0)
        #expect(result.notice.title == "The window of this model or member is closed.")
    }

    @Test("the confirmation names the model, its count, and what stays")
    func confirmation() throws {
        var counter = PartCounter()
        counter.used = 500
        let page = try confirmation("reset", "mini*", counter)
        #expect(page.question == "Set the count of the model mini* in November 2026 from 500 to 0?")
        #expect(page.effects.contains("Kept: the user’s own count, and those of other models and members."))
        #expect(page.fields.map(\.value) == ["model:mini*"])
    }

    private func confirmation(_ action: String, _ name: String, _ counter: PartCounter) throws -> ConfirmPage {
        var snapshot = try DashboardFixtures.account().usage.get().snapshot
        let model = try #require(ModelName.ofLimit(named: name))
        let part = MessagePart.model(model)
        snapshot.parts = [PartUsage(part, limit: snapshot.plan.limit(of: part), counter: counter)]
        return ActionConfirmation(
            form: try ActionForm.read(action: action, ["reason": "why", "part": "model:\(name)"]),
            user: ada,
            snapshot: snapshot,
            actor: "ann",
            planLabel: nil
        ).page(DashboardFixtures.frame("Reset"), key: "k")
    }
}
