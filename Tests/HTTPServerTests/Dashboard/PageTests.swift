import Engine
import Foundation
import TestSupport
import Testing
import Usage

@testable import HTTPServer

@Suite("A page")
struct PageTests {
    private let library: PageLibrary

    init() throws {
        library = try PageLibrary()
    }

    private func overview(_ figures: OverviewFigures = DashboardFixtures.overview) -> String {
        library.render(.overview, OverviewPresenter(figures: figures).page(DashboardFixtures.frame("Overview")))
    }

    private func user(_ figures: UserFigures = DashboardFixtures.user, mayChange: Bool = true) -> String {
        let page = UserPresenter(figures: figures).page(
            DashboardFixtures.frame("User"),
            notices: [],
            actions: mayChange ? DashboardFixtures.actions : nil
        )
        return library.render(.user, page)
    }

    /// Every page that there is, with one text wherever text goes.
    private func pages(telling nasty: String) -> [String] {
        var figures = DashboardFixtures.user
        var records = UserRecords()
        var subscription = UserRecords.Subscription(transaction: nasty, plan: nasty)
        subscription.product = nasty
        records.subscriptions = [subscription]
        let now = at("2026-11-21")
        records.events = [
            UserRecords.Event(at: now, source: nasty, type: nasty, outcome: nasty, detail: nasty, problem: nasty)
        ]
        records.changes = [AuditTrailReader.Event(at: now, what: nasty, detail: nasty, actor: nasty, reason: nasty)]
        figures.records = .success(records)
        figures.usage = .success(
            DashboardFixtures.answer(1, plan: Plan(name: nasty, label: nasty, cycle: .monthly, allowance: 1))
        )
        var frame = DashboardFixtures.frame(nasty)
        frame.signedInAs = nasty
        let notice = Notice(.good, nasty, nasty)
        var actions = DashboardFixtures.actions
        (actions.messages, actions.grantReason, actions.messagesMistake, actions.period) = (nasty, nasty, nasty, nasty)
        var overview = OverviewPresenter(figures: DashboardFixtures.overview).page(frame)
        (overview.heading, overview.live.sentence) = (nasty, nasty)
        overview.days?.note = nasty
        overview.firstSteps = FirstSteps(command: nasty)
        overview.failedEvents?.events[0].problem = nasty
        overview.plans?.rows[0].label = nasty
        (actions.grantCaveat, actions.resetCaveat) = (notice, notice)
        return [
            library.render(.overview, overview),
            library.render(.user, UserPresenter(figures: figures).page(frame, notices: [notice], actions: actions)),
            library.render(.find, FindPage(frame: frame, typed: nasty, mistake: nasty)),
            library.render(
                .signIn,
                SignInPage(frame: frame, mistake: nasty, notices: [notice], destination: nasty, mayBeSignedIn: true)
            ),
            library.render(
                .confirm,
                ConfirmPage(
                    frame: frame,
                    user: nasty,
                    action: nasty,
                    heading: nasty,
                    question: nasty,
                    caveat: notice,
                    consequence: nasty,
                    button: nasty,
                    buttonLook: nasty,
                    reason: nasty,
                    messages: nasty,
                    key: nasty,
                    snapshot: nasty
                )
            ),
            library.render(
                .problem,
                ProblemPage(frame: frame, heading: nasty, text: nasty, advice: nasty, link: nasty, linkText: nasty)
            ),
        ]
    }

    @Test("escapes all text")
    func escaping() {
        for page in pages(telling: "\"><script>alert('1')</script>&{{frame}}") {
            #expect(page.contains("&lt;script&gt;alert(&#39;1&#39;)"))
            #expect(!page.contains("<script>") && !page.contains("'1'"))
        }
    }

    @Test("escapes markup also where it is one character with the scalars beside it")
    func escapingScalars() {
        let (before, after): (Unicode.Scalar, [Unicode.Scalar]) = ("\u{600}", ["\u{301}", "\u{338}"])
        let marks = ["<", ">", "\"", "'", "&"].map { "\(before)\($0) \($0)\(after[0]) \($0)\(after[1])" }
        for page in pages(telling: marks.joined()) {
            let scalars = Array(page.unicodeScalars)
            #expect(scalars.contains(before))
            for (index, scalar) in scalars.enumerated() {
                if scalar == before { #expect(scalars[index + 1] == "&") }
                if after.contains(scalar) { #expect(scalars[index - 1] == ";") }
            }
            for name in ["lt", "gt", "quot", "#39", "amp"] {
                #expect(page.utf8.contains("\(before)&\(name);".utf8))
            }
        }
    }

    @Test("holds nothing that the Content-Security-Policy would stop")
    func policy() throws {
        let forbidden = try Regex("<style|\\sstyle=|\\son[a-z]+=|javascript:|https?://|src=\"//")
        for page in [overview(), user()] {
            #expect(page.firstMatch(of: forbidden) == nil)
            #expect(page.components(separatedBy: "<script").count == 2)
        }
    }

    @Test("has unique ids, and each label and description names one of them")
    func ids() throws {
        for page in [overview(), user()] {
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
