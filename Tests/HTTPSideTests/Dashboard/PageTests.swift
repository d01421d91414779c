import Foundation
import TestSupport
import Testing
import Usage
import UsageStore

@testable import HTTPSide

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

    @Test("of the overview has the figures that it is given")
    func figures() {
        let page = overview()
        for text in [
            "1,325,113", "13,183", "518", "3.9 %", "11,212", "November 2026", "1,482,765 messages in 30 days",
            "Counted 3 s ago",
        ] {
            #expect(page.contains(text), "\(text)")
        }
        #expect(page.contains("<option value=\"open\" selected>Open now</option>"))
        #expect(page.contains("<option value=\"2026-11\">November 2026 (this month)</option>"))
        #expect(page.contains("<option value=\"trial\">trial</option>"))
        #expect(page.components(separatedBy: "/dashboard/users/7f1c0a52").count - 1 == 10)
        #expect(page.contains("Slowest 1 %") && page.contains("1.84 ms"))
    }

    @Test("of the overview shows a month that somebody chose")
    func month() {
        var figures = DashboardFixtures.overview
        figures.period = billingPeriod("2026-11")
        let page = overview(figures)
        for text in ["1,284,091", "11,952", "207", "1.7 %", "10,412"] {
            #expect(page.contains(text), "\(text)")
        }
        #expect(page.contains("<option value=\"open\">Open now</option>"))
        #expect(page.contains("<option value=\"2026-11\" selected>November 2026 (this month)</option>"))
    }

    @Test("of the overview says what is missing, and why")
    func missing() {
        var figures = DashboardFixtures.overview
        figures.periods = .counting
        figures.days = .missing(StoreError(.unavailable, "away"))
        figures.top = .known([], age: .zero, trouble: nil)
        let presenter = OverviewPresenter(figures: figures)
        #expect(presenter.isIncomplete)
        let page = overview(figures)
        #expect(page.contains("This is being counted"))
        #expect(page.contains("The database cannot be reached at the moment."))
        #expect(page.contains("Nobody has sent a message in this period."))
        #expect(!OverviewPresenter(figures: DashboardFixtures.overview).isIncomplete)
    }

    @Test("of an empty service says what to do")
    func empty() {
        var figures = DashboardFixtures.overview
        figures.periods = .known(
            AllPeriods(current: billingPeriod("2026-11"), open: PeriodReport(period: .open), reports: []),
            age: .zero,
            trouble: nil
        )
        figures.top = .known([], age: .zero, trouble: nil)
        figures.days = .known([], age: .zero, trouble: nil)
        let page = overview(figures)
        #expect(page.contains("As soon as your product sends CONSUME"))
        #expect(page.contains("Days fill up as your product sends CONSUME."))
    }

    @Test("of a user has the standing, the words shown, and the story")
    func story() {
        let page = user()
        for text in [
            "772 of 800", "prominent", "Almost there — 26 messages left until December 1", "1 December 2026, 00:00 UTC",
            "2 <span",
            "token:ann", "outage of the 12th", "count 801 → 0", "limit 800, period 2026-11", "RENEWAL",
            "the product tokens_50 is not mapped", "2000000123456789", "Grant messages",
        ] {
            #expect(page.contains(text), "\(text)")
        }
        #expect(!user(mayChange: false).contains("<form class=\"card\""))
    }

    @Test("of a user of whom nothing is known says so")
    func unknown() {
        var figures = DashboardFixtures.user
        figures.usage = .success(DashboardFixtures.answer(0, limit: 100, plan: DashboardFixtures.trial))
        figures.history = .success([])
        figures.records = .success(UserRecords())
        let page = user(figures)
        #expect(page.contains("This user is not known yet."))
        #expect(page.contains("day 1 of 3") || page.contains("day 2 of 3"))
        figures.usage = .failure(StoreError(.unavailable, "away"))
        figures.records = .failure(StoreError(.unavailable, "away"))
        #expect(UserPresenter(figures: figures).isIncomplete)
        #expect(user(figures).contains("The database is away."))
        #expect(!user(figures).contains("Grant messages"), "nothing can be granted to whom nobody can look at")
    }

    @Test("of a user without a limit has no bar, and one over it is full")
    func limits() {
        var figures = DashboardFixtures.user
        figures.usage = .success(DashboardFixtures.answer(5_000, limit: nil))
        #expect(!user(figures).contains("id=\"usage-title\""))
        #expect(user(figures).contains("unlimited"))
        figures.usage = .success(DashboardFixtures.answer(900))
        #expect(user(figures).contains("900 of 800"))
        #expect(user(figures).contains("limit reached"))
        figures.usage = .success(DashboardFixtures.answer(0, limit: 0))
        #expect(user(figures).contains("0 of 0"))
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
        records.changes = [StoryReader.Event(at: now, what: nasty, detail: nasty, actor: nasty, reason: nasty)]
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
                    consequence: nasty,
                    button: nasty,
                    reason: nasty,
                    messages: nasty,
                    key: nasty,
                    standing: nasty
                )
            ),
            library.render(
                .problem,
                ProblemPage(frame: frame, heading: nasty, text: nasty, advice: nasty, link: nasty, linkText: nasty)
            ),
        ]
    }

    @Test("escapes whatever it is told")
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
