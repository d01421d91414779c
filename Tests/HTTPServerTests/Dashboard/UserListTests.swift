import Engine
import Foundation
import TestSupport
import Testing
import Usage

@testable import HTTPServer

@Suite("A list of users")
struct UserListTests {
    private let library: PageLibrary

    init() throws { library = try PageLibrary() }

    private func html(_ figures: UserListFigures, page: Int = 1) -> String {
        let page = UserListPresenter(figures: figures, page: page).page(DashboardFixtures.frame("Users"))
        return library.render(.userList, page)
    }

    private func users(_ page: String) -> Int { page.components(separatedBy: "<a class=\"id\"").count - 1 }

    @Test("has fifty users a page, numbered on, with links to the pages beside it")
    func paging() {
        let first = html(DashboardFixtures.list(120))
        #expect(users(first) == 50 && first.contains("1 to 50 of 120 users"))
        #expect(first.contains("href=\"/dashboard/list?period=open&amp;tier=blocked&amp;page=2\">Next page</a>"))
        #expect(!first.contains("Previous page"))
        let last = html(DashboardFixtures.list(120), page: 3)
        #expect(users(last) == 20 && last.contains("101 to 120 of 120 users"))
        #expect(last.contains("<td class=\"number\">101</td>") && !last.contains("Next page"))
        #expect(last.contains("page=2\">Previous page</a>"))
        #expect(!last.contains("The list ends here."))
        #expect(!UserListPresenter(figures: DashboardFixtures.list(100), page: 3).hasPage)
        #expect(UserListPresenter(figures: DashboardFixtures.list(0), page: 1).hasPage)
        let one = html(DashboardFixtures.list(1))
        #expect(one.contains("<p>1 user</p>") && !one.contains("Next page"))
    }

    @Test("says that it is not complete")
    func bounded() {
        let last = html(DashboardFixtures.list(1_000), page: 20)
        #expect(last.contains("951 to 1,000 of 1,000 users or more") && last.contains("The list ends here."))
    }

    @Test("names what it lists")
    func heading() {
        #expect(html(DashboardFixtures.list(1)).contains(">Open now: in the tier blocked</h2>"))
        let plan = html(DashboardFixtures.list(1, tier: nil, plan: "paid"))
        #expect(plan.contains(">Open now: on the plan Premium</h2>"))
        #expect(plan.contains("<option value=\"paid\" selected>Premium (paid)</option>"))
        #expect(plan.contains("<option value=\"\" selected>all tiers</option>"))
        // A plan that was deleted.
        #expect(
            html(DashboardFixtures.list(1, plan: "gold")).contains("<option value=\"gold\" selected>gold</option>")
        )
    }

    @Test("says which of a user's periods in the month a row is")
    func numbered() {
        var figures = DashboardFixtures.list(2)
        #expect(!html(figures).contains("November 2026 (2)"))
        let usage = PeriodUsage(user: user(1), period: billingPeriod("2026-11.2"), used: 5, limit: 800, tier: .silent)
        figures.users = .now([usage])
        #expect(html(figures).contains("</a> <span class=\"muted\">November 2026 (2)</span></th>"))
    }

    @Test("an empty list, one that is being read and one that cannot be read differ")
    func withoutUsers() {
        var figures = DashboardFixtures.list(0)
        #expect(html(figures).contains("No such user.") && !html(figures).contains("data-refresh"))
        figures.users = .loading
        #expect(html(figures).contains("Still counting") && html(figures).contains("data-refresh=\"2\""))
        figures.users = .failed(.databaseIsAway)
        #expect(html(figures).contains("The database cannot be reached at the moment."))
        #expect(!html(figures).contains("No such user."))
        #expect(html(figures).contains("data-refresh=\"15\""), "it is tried again")
        figures.users = .loaded([], age: .seconds(180), error: .databaseIsAway)
        #expect(html(figures).contains("No such user. That was 3 min ago. The database cannot be reached"))
        #expect(UserListPresenter(figures: figures, page: 1).isIncomplete)
    }

    @Test("a link has the list's period, tier, plan and page")
    func links() throws {
        let query = UserListQuery(period: billingPeriod("2026-11"), tier: .gentle, plan: "paid")
        #expect(query.path() == "/dashboard/list?period=2026-11&tier=gentle&plan=paid")
        #expect(query.path(page: 2).hasSuffix("&page=2"))
        let fields = try #require(FormFields.parse(query.path().split(separator: "?")[1].utf8))
        #expect(UserListQuery(fields) == query)
        #expect(UserListQuery([:]) == UserListQuery(period: .open))
        #expect(UserListQuery(["tier": "", "plan": "", "period": ""]) == UserListQuery(period: .open))
        for (name, value) in [("tier", "loud"), ("plan", "Gold!"), ("period", "20 26")] {
            #expect(UserListQuery([name: value]) == nil, "\(name)")
        }
    }

    @Test("only a plan that is configured or has usage can be listed")
    func plansThatExist() {
        let figures = DashboardFixtures.overview
        let (periods, billing) = (figures.periods.value, figures.billing.value)
        for plan in [nil, "paid", "pro", "trial"] { #expect(DashboardFigures.mayExist(plan, periods, billing)) }
        #expect(!DashboardFigures.mayExist("gold", periods, billing))
        #expect(DashboardFigures.mayExist("gold", nil, billing) && DashboardFigures.mayExist("gold", periods, nil))
    }

    @Test("a value in a link is encoded, and decoded to the same")
    func encoding() {
        let name = BillingEventLog.Name(source: "my.billing", id: "a&b=c d/é\u{301}<\"#?+%")
        let query = EventPage.path(of: name).split(separator: "?", maxSplits: 1)[1]
        #expect(query.utf8.allSatisfy { (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "\"") })
        let fields = FormFields.parse(query.utf8)
        #expect(fields?["source"] == name.source)
        #expect(fields?["id"].map { Array($0.utf8) } == Array(name.id.utf8))
    }
}
