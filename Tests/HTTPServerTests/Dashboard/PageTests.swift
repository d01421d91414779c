import Engine
import Foundation
import TestSupport
import Testing
import Usage

@testable import HTTPServer

@Suite("All pages")
struct PageTests {
    private let library: PageLibrary

    init() throws { library = try PageLibrary() }

    /// Every page, with one text in all places.
    private func pages(with text: String) -> [String] {
        var figures = DashboardFixtures.user
        var records = UserDetails()
        var subscription = UserDetails.Subscription(transaction: text, plan: text)
        subscription.product = text
        records.subscriptions = [subscription]
        let now = at("2026-11-21")
        records.events = [
            UserDetails.Event(
                at: now,
                name: BillingEventLog.Name(source: text, id: text),
                type: text,
                outcome: text,
                detail: text,
                problem: text
            )
        ]
        records.changes = [AuditTrailReader.Event(at: now, what: text, detail: text, actor: text, reason: text)]
        figures.records = .success(records)
        var model = ReportedAllowance(kind: .model, name: text, used: 1, held: 1, tier: .silent)
        (model.label, model.limit, model.fallback) = ("\(text) for users", 2, text)
        figures.allowances = .success([model])
        figures.usage = .success(
            DashboardFixtures.answer(1, plan: Plan(name: text, label: text, cycle: .monthly, allowance: 1))
        )
        var frame = DashboardFixtures.frame(text)
        frame.signedInAs = text
        let notice = Notice(.good, text, text)
        var actions = DashboardFixtures.actions
        (actions.messages, actions.messagesError, actions.period) = (text, text, text)
        (actions.grantReason.value, actions.grantReason.error) = (text, text)
        let plan = Plan(name: text, label: text, cycle: .monthly, allowance: 1)
        actions.plan = UserPage.PlanForm(plans: [plan], selectedPlan: text, expires: text, stateError: text)
        var overview = OverviewPresenter(figures: DashboardFixtures.overview).page(frame)
        (overview.heading, overview.live.sentence) = (text, text)
        overview.days?.note = text
        overview.firstSteps = FirstSteps(command: text)
        overview.failedEvents?.events[0].problem = text
        overview.plans?.rows[0].label = text
        overview.plans?.rows[0].linkLabel = text
        overview.plans?.trials[0].label = text
        overview.failedEvents?.events[0].replayLink = text
        (actions.grantCaveat, actions.resetCaveat) = (notice, notice)
        let option = UserPage.Option(value: text, text: text, isSelected: true)
        actions.resetChoice = UserPage.PartChoice(id: "reset-part", label: text, options: [option])
        overview.plans?.rows[0].limits = [text]
        let user = UserPresenter(figures: figures, mayChange: true, partSearch: PartSearch(text, in: nil))
        return [
            library.render(.overview, overview),
            library.render(.user, user.page(frame, notices: [notice], actions: actions)),
            library.render(.find, FindPage(frame, input: text, namespace: nil)),
            library.render(.signIn, SignInPage(frame: frame, error: text, returnPath: text, mayBeSignedIn: true)),
            library.render(
                .confirm,
                ConfirmPage(
                    frame: frame,
                    user: text,
                    action: text,
                    heading: text,
                    question: text,
                    caveat: notice,
                    effects: [text],
                    hasEffects: true,
                    consequence: text,
                    button: text,
                    buttonClass: text,
                    reason: text,
                    fields: [ConfirmPage.Field(name: text, value: text)],
                    key: text,
                    usage: text,
                    typed: ConfirmPage.TypedWord(word: text, error: text)
                )
            ),
            library.render(
                .event,
                EventPage(
                    frame: frame,
                    notices: [notice],
                    details: [UserPage.Detail(name: text, text: text)],
                    user: text,
                    problem: text,
                    outcomeState: text,
                    outcome: text,
                    replay: EventPage.Replay(
                        source: text,
                        id: text,
                        actor: text,
                        replayReason: UserPage.ReasonField(id: text, value: text, error: text)
                    )
                )
            ),
            library.render(.userList, userList(text)),
            library.render(.problem, ProblemPage(frame: frame, heading: text, text: text, advice: text)),
        ]
    }

    private var account: String { library.user(DashboardFixtures.account(), part: "gpt-5") }

    private func userList(_ text: String) -> UserListPage {
        var page = UserListPresenter(figures: DashboardFixtures.list(60), page: 1).page(DashboardFixtures.frame(text))
        page.plans = [UserPage.Option(value: text, text: text, isSelected: true)]
        (page.heading, page.placeholder, page.position, page.previousLink) = (text, text, text, text)
        return page
    }

    @Test("every template file is registered")
    func templates() throws {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        let folder = root.appending(path: "Sources/HTTPServer/Dashboard/Templates").path
        let files = try FileManager.default.contentsOfDirectory(atPath: folder)
        #expect(Set(files) == Set(PageLibrary.templates.keys.map { "\($0).mustache" }))
    }

    @Test("all text is escaped")
    func escaping() {
        for page in pages(with: "\"><script>alert('1')</script>&{{frame}}") {
            #expect(page.contains("&lt;script&gt;alert(&#39;1&#39;)"))
            #expect(!page.contains("<script>") && !page.contains("'1'"))
        }
    }

    @Test("markup is escaped even if it forms one character with adjacent scalars")
    func escapingScalars() {
        let (before, after): (Unicode.Scalar, [Unicode.Scalar]) = ("\u{600}", ["\u{301}", "\u{338}"])
        let marks = ["<", ">", "\"", "'", "&"].map { "\(before)\($0) \($0)\(after[0]) \($0)\(after[1])" }
        for page in pages(with: marks.joined()) {
            let scalars = Array(page.unicodeScalars)
            #expect(scalars.contains(before))
            for (index, scalar) in scalars.enumerated() {
                if scalar == before { #expect(scalars[index + 1] == "&") }
                if after.contains(scalar) { #expect(scalars[index - 1] == ";") }
            }
            for name in ["lt", "gt", "quot", "#39", "amp"] { #expect(page.utf8.contains("\(before)&\(name);".utf8)) }
        }
    }

    @Test("pages comply with their Content-Security-Policy")
    func policy() throws {
        let forbidden = try Regex("<style|\\sstyle=|\\son[a-z]+=|javascript:|https?://|src=\"//")
        for page in [library.overview(), library.user(), library.render(.userList, userList("a list")), account] {
            #expect(page.firstMatch(of: forbidden) == nil)
            #expect(page.components(separatedBy: "<script").count == 2)
        }
    }

    @Test("ids are unique, and labels and descriptions refer to existing ids")
    func ids() throws {
        for page in [library.overview(), library.user(), library.render(.userList, userList("a list")), account] {
            let ids = page.matches(of: try Regex("\\sid=\"([^\"]+)\"", as: (Substring, Substring).self)).map {
                String($0.output.1)
            }
            #expect(Set(ids).count == ids.count)
            for attribute in ["for", "aria-labelledby", "aria-describedby"] {
                let pattern = try Regex("\\s\(attribute)=\"([^\"]+)\"", as: (Substring, Substring).self)
                for match in page.matches(of: pattern) {
                    for name in match.output.1.split(separator: " ") { #expect(ids.contains(String(name)), "\(name)") }
                }
            }
        }
    }
}
