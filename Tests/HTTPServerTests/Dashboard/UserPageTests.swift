import Engine
import Foundation
import TestSupport
import Testing
import Usage

@testable import HTTPServer

@Suite("The page of a user")
struct UserPageTests {
    private let library: PageLibrary

    init() throws { library = try PageLibrary() }

    private func html(_ figures: UserFigures = DashboardFixtures.user, mayChange: Bool = true) -> String {
        library.user(figures, mayChange: mayChange)
    }

    @Test("shows the usage, the product's texts, and the history")
    func content() {
        let page = html()
        for text in [
            "772 of 800", "prominent", "Almost there — 26 messages left until December 1", "1 December 2026, 00:00 UTC",
            "<bdi>2</bdi> <span",
            "token:ann", "outage of the 12th", "count 801 → 0", "limit 800, period 2026-11", "RENEWAL",
            "the product tokens_50 is not mapped", "2000000123456789", "Grant messages",
        ] {
            #expect(page.contains(text), "\(text)")
        }
        #expect(!html(mayChange: false).contains("<form class=\"card\""))
    }

    private func html(_ answer: Answer) -> String {
        var figures = DashboardFixtures.user
        figures.usage = .success(answer)
        return html(figures)
    }

    @Test("shows whether access is none, has ended, ends or renews")
    func access() {
        let revoked = html(DashboardFixtures.answer(12, state: .revoked, denialReason: .revoked, ends: "2026-12-17"))
        #expect(!revoked.contains("Access until") && revoked.contains("<dt>Access</dt><dd><bdi>none</bdi></dd>"))
        #expect(revoked.contains("The subscription is revoked."))
        let expired = html(DashboardFixtures.answer(12, state: .expired, denialReason: .expired, ends: "2026-11-17"))
        #expect(expired.contains("<dt>Access ended</dt>") && !expired.contains("Available again"))
        let cancelled = html(DashboardFixtures.answer(12, state: .cancelled, ends: "2026-11-30"))
        #expect(cancelled.contains("<dt>Access until</dt>") && !cancelled.contains("Available again"))
        #expect(html(DashboardFixtures.answer(12, state: .cancelled, ends: "2026-12-17")).contains("Available again"))
        var renewed = DashboardFixtures.answer(12, state: .active, ends: "2026-12-17")
        #expect(html(renewed).contains("<dt>Access until</dt>") && !html(renewed).contains("Renews"))
        renewed.snapshot.renews = true
        renewed.snapshot.renewsAt = at("2026-12-17")
        #expect(html(renewed).contains("<dt>Renews</dt>") && !html(renewed).contains("Access until"))
    }

    @Test("a revoked subscription ends when it was revoked")
    func revokedSubscription() {
        var figures = DashboardFixtures.user
        var subscription = DashboardFixtures.subscription
        subscription.revokedAt = at("2026-11-20T08:00:00Z")
        figures.records = .success(UserDetails(subscriptions: [subscription]))
        let page = html(figures)
        #expect(page.contains("until <time datetime=\"2026-11-20T08:00:00Z\""))
        #expect(page.contains("Revoked; paid until 1 December 2026, 10:00 UTC"))
    }

    @Test("a failed payment comes first, and nothing is green")
    func failedPayment() throws {
        let grace = html(DashboardFixtures.answer(12, state: .gracePeriod, ends: "2026-12-02"))
        let (notice, state, tier) = (
            try #require(grace.range(of: "A payment failed.")),
            try #require(grace.range(of: "<span class=\"state bad\">grace period</span>")),
            try #require(grace.range(of: "<span class=\"tier \">silent</span>"))
        )
        #expect(notice.lowerBound < state.lowerBound && state.lowerBound < tier.lowerBound)
        let retry = html(
            DashboardFixtures.answer(12, state: .billingRetry, denialReason: .billingRetry, ends: "2026-11-17")
        )
        #expect(retry.contains("no access until the payment is made") && retry.contains("state bad\">billing retry"))
        #expect(html().contains("<span class=\"state good\">active</span>"))
    }

    @Test("a user without data is shown as such")
    func unknown() {
        var figures = DashboardFixtures.user
        figures.usage = .success(DashboardFixtures.answer(0, limit: 100, plan: DashboardFixtures.trial))
        figures.history = .success([])
        figures.records = .success(UserDetails())
        let page = html(figures)
        #expect(page.contains("No data about this user yet."))
        #expect(page.contains("day 1 of 3") || page.contains("day 2 of 3"))
        figures.usage = .failure(EngineError(.unavailable, "away"))
        figures.records = .failure(EngineError(.unavailable, "away"))
        #expect(UserPresenter(figures: figures).isIncomplete)
        #expect(html(figures).contains("Database unavailable."))
        #expect(!html(figures).contains("Grant messages"), "without usage there are no actions")
        #expect(html(figures).contains("No messages yet."), "the history was read, and it is empty")
        figures.history = .failure(EngineError(.unavailable, "away"))
        #expect(!html(figures).contains("No messages yet."))
        let rest = html(figures).components(separatedBy: "id=\"periods-heading\"").last ?? ""
        #expect(rest.contains("The database cannot be reached at the moment."))
    }

    @Test("an operator can replay a failed event")
    func replay() {
        let presenter = UserPresenter(figures: DashboardFixtures.user, mayChange: true)
        let page = library.render(.user, presenter.page(DashboardFixtures.frame("User"), notices: [], actions: nil))
        let link = "href=\"/dashboard/event?source=revenuecat&amp;id=2\">Replay this NON_RENEWING_PURCHASE…"
        #expect(page.contains(link))
        #expect(page.components(separatedBy: "/dashboard/event?").count == 2, "not those that were applied")
        #expect(!html(mayChange: false).contains("/dashboard/event?"))
    }

    @Test("the form of plans has the present one selected")
    func planForm() {
        #expect(html().contains("<option value=\"pro\" selected>Pro (pro)</option>"))
        var figures = DashboardFixtures.user
        let label = "مميّز"
        let plan = Plan(name: "arabic", label: label, cycle: .monthly, allowance: 800)
        figures.usage = .success(DashboardFixtures.answer(1, plan: plan))
        let page = html(figures)
        #expect(page.contains("<bdi>\(label)</bdi>"), "it does not reorder what is beside it")
        #expect(label.isolated == "\u{2068}\(label)\u{2069}" && "Premium".isolated == "Premium")
    }

    @Test("without a limit there is no bar, and over the limit the page says so")
    func limits() {
        var figures = DashboardFixtures.user
        figures.usage = .success(DashboardFixtures.answer(5_000, limit: nil))
        #expect(!html(figures).contains("id=\"usage-title\""))
        #expect(html(figures).contains("unlimited"))
        figures.usage = .success(DashboardFixtures.answer(900))
        #expect(html(figures).contains("900 of 800"))
        #expect(html(figures).contains("limit reached"))
        figures.usage = .success(DashboardFixtures.answer(0, limit: 0))
        #expect(html(figures).contains("0 of 0"))
    }
}
