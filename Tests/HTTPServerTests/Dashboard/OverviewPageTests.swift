import Engine
import Foundation
import TestSupport
import Testing
import Usage

@testable import HTTPServer

@Suite("The overview")
struct OverviewPageTests {
    private let library: PageLibrary

    init() throws { library = try PageLibrary() }

    private func overview(_ figures: OverviewFigures = DashboardFixtures.overview) -> String {
        library.overview(figures)
    }

    @Test("shows the given figures")
    func figures() {
        let page = overview()
        for text in [
            "1,325,113", "13,183", "518", "3.9 %", "11,212", "November 2026", "1,482,765 messages in 30 days",
            "Updated 3 s ago",
        ] {
            #expect(page.contains(text), "\(text)")
        }
        #expect(page.contains("<option value=\"open\" selected>Open now</option>"))
        #expect(page.contains("<option value=\"2026-11\">November 2026 (this month)</option>"))
        #expect(page.contains("<option value=\"trial\">trial</option>"))
        // Ten top users, and the user of a failed event.
        #expect(page.components(separatedBy: "/dashboard/users/7f1c0a52").count - 1 == 11)
        #expect(page.contains("Slowest 1 %") && page.contains("1.84 ms"))
    }

    @Test("shows the selected month")
    func month() {
        var figures = DashboardFixtures.overview
        figures.period = billingPeriod("2026-11")
        let page = overview(figures)
        for text in ["1,284,091", "11,952", "207", "1.7 %", "10,412"] { #expect(page.contains(text), "\(text)") }
        #expect(page.contains("<option value=\"open\">Open now</option>"))
        #expect(page.contains("<option value=\"2026-11\" selected>November 2026 (this month)</option>"))
    }

    @Test("the current and the selected month can be chosen even without usage")
    func monthsWithoutUsage() {
        var figures = DashboardFixtures.overview
        let old = DashboardFixtures.report("2025-02", messages: 7, silent: 1)
        figures.periods = DashboardFixtures.periods([old], current: "2026-12")
        figures.period = billingPeriod("1999-12")
        let options = overview(figures).split(separator: "\n").filter { $0.hasPrefix("<option ") }
        #expect(
            options == [
                "<option value=\"open\">Open now</option>",
                "<option value=\"2026-12\">December 2026 (this month)</option>",
                "<option value=\"2025-02\">February 2025</option>",
                "<option value=\"1999-12\" selected>December 1999</option>",
            ]
        )
    }

    @Test("a missing section says why it is missing")
    func missing() {
        var figures = DashboardFixtures.overview
        figures.periods = .loading
        figures.days = .failed(EngineError(.unavailable, "away"))
        figures.top = .now([])
        let presenter = OverviewPresenter(figures: figures)
        #expect(presenter.isIncomplete)
        let page = overview(figures)
        #expect(page.contains("Still counting"))
        #expect(page.contains("The database cannot be reached at the moment."))
        #expect(page.contains("No messages in this period."))
        #expect(!OverviewPresenter(figures: DashboardFixtures.overview).isIncomplete)
    }

    @Test("an empty figure that could not be read since says how old it is")
    func emptyAndOld() {
        var figures = DashboardFixtures.overview
        let (away, age) = (EngineError.databaseIsAway, Duration.seconds(180))
        let none = AllPeriods(current: billingPeriod("2026-11"), open: PeriodReport(period: .open), reports: [])
        figures.periods = .loaded(none, age: age, error: away)
        figures.days = .loaded([], age: age, error: away)
        figures.top = .loaded([], age: age, error: away)
        figures.billing = .loaded(BillingOverview(), age: age, error: away)
        let page = overview(figures)
        for text in [
            "No period is open now. Choose an earlier billing period above.", "No messages in the last 30 days.",
            "belong to no month.", "No messages in this period.", "No store event has failed.",
        ] {
            let rest = page.components(separatedBy: text).dropFirst().first ?? ""
            let sentence = rest.prefix { $0 != "<" }
            #expect(sentence.contains("That was 3 min ago. The database cannot be reached at the moment."), "\(text)")
        }
        #expect(!page.contains("Getting started"), "whether there are messages is not known now")
    }

    @Test(
        "the average is whole, with a decimal only for a few messages",
        arguments: [
            (4_439, 10, "444 messages"), (4_434, 10, "443 messages"), (3, 2, "1.5 messages"), (1, 1, "1 message"),
            (99, 10, "9.9 messages"), (20, 2, "10 messages"), (1, 100, "0 messages"), (11, 10, "1.1 messages"),
        ]
    )
    func average(messages: Int, users: Int, text: String) {
        var figures = DashboardFixtures.overview
        var report = PeriodReport(period: .open)
        report.add(users: users, in: .silent, messages: messages)
        figures.periods = DashboardFixtures.periods([report], open: report)
        #expect(overview(figures).contains("<dd class=\"more\">\(text) a user on average</dd>"))
    }

    @Test("periods are offered by kind, the newest first; some days and weeks of many")
    func periodOptions() {
        let days = (0..<100).map { BillingPeriod(day: CivilDate(daysSince1970: 20_000 + $0)) }
        let weeks = (0..<100).map { BillingPeriod(weekOf: CivilDate(daysSince1970: 20_000 + 7 * $0)) }
        // Those with a number are in the report of their month or week.
        let others = ["2026-10", "2026-10.2", "trial", "free"].map(billingPeriod)
        func options(selected: String) -> PeriodOptions {
            let periods = AllPeriods(
                current: billingPeriod("2026-11"),
                open: PeriodReport(period: .open),
                reports: (days + weeks + others).map { PeriodReport(period: $0) }
            )
            return PeriodOptions(periods, selected: BillingPeriod(storedLabel: selected))
        }
        let labels = options(selected: "open").options.map(\.value)
        let newest = weeks.reversed().prefix(53) + days.reversed().prefix(62)
        #expect(labels == ["open", "2026-11", "2026-10"] + newest.map(\.label) + ["free", "trial"])
        #expect(options(selected: "open").isTruncated)
        let oldest = options(selected: days[0].label).options
        #expect(oldest.map(\.value) == labels.dropLast(2) + [days[0].label, "free", "trial"])
        #expect(oldest.filter(\.isSelected).map(\.value) == [days[0].label])
        let second = options(selected: "2026-10.2").options
        #expect(second.map(\.value).prefix(4) == ["open", "2026-11", "2026-10.2", "2026-10"])
        #expect(second.filter(\.isSelected).map(\.text) == ["October 2026 (2)"])
    }

    @Test("a page does not grow with the number of periods and plans")
    func bounded() {
        var figures = DashboardFixtures.overview
        let months = (1_500..<2_000).flatMap { ["\($0)-01", "\($0)-07"] }
        let labels = months + (0..<5_000).map { "label\($0)" }
        let plans = (0..<3_000).map { PlanReport(plan: "plan\($0)", users: $0, messages: $0, blocked: 0) }
        figures.periods = DashboardFixtures.periods(
            labels.map { PeriodReport(period: BillingPeriod(storedLabel: $0)) },
            open: DashboardFixtures.report("open", messages: 1, silent: 1),
            plans: [.open: plans]
        )
        figures.period = BillingPeriod(storedLabel: "label999")
        let page = overview(figures)
        #expect(page.components(separatedBy: "<option ").count < 180)
        #expect(page.contains("<option value=\"label999\" selected>"), "the selected one is listed all the same")
        #expect(page.contains("Some periods are not listed."))
        figures.period = .open
        #expect(overview(figures).contains(">plan2999<") && !overview(figures).contains(">plan100<"))
        #expect(overview(figures).contains("Plans with fewer users are not listed."))
        #expect(overview(figures).utf8.count < 100_000)
    }

    @Test("an operator can replay a failed event; tiers and plans link to their users")
    func links() {
        let page = library.overview(mayChange: true)
        #expect(page.contains("href=\"/dashboard/event?source=revenuecat&amp;id=renewal%20%26%20more\""))
        #expect(!overview().contains("/dashboard/event?"), "a viewer may not")
        #expect(
            page.contains(
                "<a href=\"/dashboard/list?period=open&amp;tier=blocked\""
                    + " aria-label=\"518 users in the tier blocked\">518</a>"
            )
        )
    }

    @Test("one failed event has one user")
    func oneFailed() {
        var figures = DashboardFixtures.overview
        figures.billing = .now(BillingOverview(failedCount: 1))
        #expect(overview(figures).contains("1 store event failed.</strong> Its user may have the wrong access."))
        #expect(overview().contains("2 store events failed.</strong> Their users may"))
    }

    @Test("a new installation shows first steps")
    func empty() {
        var figures = DashboardFixtures.overview
        figures.periods = DashboardFixtures.periods([])
        figures.top = .now([])
        figures.days = .now([])
        figures.billing = .now(BillingOverview(plans: Plan.initial))
        let page = overview(figures)
        #expect(page.contains("Getting started") && page.contains("headroom token create backend --scope chat"))
        #expect(!page.contains("<svg class=\"columns\""), "empty charts are not drawn")
        #expect(page.contains("<section data-part=\"summary\" hidden>"))
        figures.period = billingPeriod("2026-11")
        #expect(overview(figures).contains("No usage in this period."))
        #expect(!overview(figures).contains("Getting started"), "a selected month is shown")
        #expect(!overview().contains("Getting started"))
        // Until all figures are loaded, there may be messages.
        figures.period = .open
        figures.days = .loading
        #expect(!overview(figures).contains("Getting started"))
    }

    @Test("there is no chart of months if only trials have usage")
    func trialsOnly() {
        var figures = DashboardFixtures.overview
        let trial = DashboardFixtures.report("trial", messages: 3, silent: 1)
        figures.periods = DashboardFixtures.periods([trial], open: trial)
        #expect(!overview(figures).contains("id=\"history-title\""))
        #expect(overview(figures).contains("No usage of monthly plans in these months."))
        #expect(overview().contains("id=\"history-title\""))
    }

    @Test("shows plans, trials and failed store events")
    func plans() throws {
        let page = overview()
        for text in [
            "<bdi>Premium</bdi> <span class=\"muted\">paid</span></th>",
            "<a href=\"/dashboard/list?period=open&amp;plan=paid\"",
            "aria-label=\"11,100 users on the plan Premium\">11,100</a>",
            "800 a month",
            "unlimited",
            "100 in 3 days", "no plan", "<bdi>Trial</bdi>: running now</dt><dd>301</dd>",
            "</bdi>: used up</dt><dd>111</dd>", "</bdi>: over</dt><dd>819</dd>", "2 store events failed.",
            "the product gold_monthly is not mapped",
            "/dashboard/users/\(TestSupport.user(3))", "no user is known for the customer",
            "headroom events replay --failed",
        ] {
            #expect(page.contains(text), "\(text)")
        }
        var figures = DashboardFixtures.overview
        figures.billing = .now(BillingOverview(plans: [DashboardFixtures.paid]))
        #expect(overview(figures).contains("No store event has failed."))
        let team = try DashboardFixtures.account().usage.get().snapshot.plan
        figures.billing = .now(BillingOverview(plans: [team]))
        for text in ["Large: 50 in 3 h, each counts 5", "mini*: 500 a month", "each member: 100 a month"] {
            #expect(overview(figures).contains("<br><span class=\"muted\">\(text)</span>"), "\(text)")
        }
        // For a month, only plans with users are listed.
        figures = DashboardFixtures.overview
        figures.period = billingPeriod("2026-11")
        #expect(overview(figures).contains("<bdi>Premium</bdi>") && !overview(figures).contains("<bdi>Pro</bdi>"))
        figures.period = billingPeriod("1999-12")
        figures.top = .loading
        #expect(!overview(figures).contains("800 a month") && overview(figures).contains("</bdi>: running now"))
        #expect(overview(figures).contains("No messages in this period."))
        figures = DashboardFixtures.overview
        figures.billing = .now(BillingOverview(plans: [DashboardFixtures.paid]))
        #expect(!overview(figures).contains("store events failed."))
        figures.billing = .now(BillingOverview(failedCount: BillingOverview.failedCountMaximum))
        #expect(overview(figures).contains("10,000 store events or more failed."))
    }

    @Test("says that a newer figure is being loaded, and refreshes soon")
    func reloading() {
        #expect(overview().contains("data-refresh=\"15\""))
        var figures = DashboardFixtures.overview
        figures.top = .loaded([], age: .seconds(180), error: nil, isReloading: true)
        #expect(overview(figures).contains("data-refresh=\"2\""))
        guard case .loaded(let periods, _, _, _) = figures.periods else { return }
        figures.periods = .loaded(periods, age: .seconds(180), error: nil, isReloading: true)
        #expect(overview(figures).contains("Updated 3 min ago, being updated now."))
        figures.periods = .loaded(periods, age: .seconds(180), error: .reportTimedOut)
        #expect(overview(figures).contains("Some figures could not be loaded."))
        #expect(overview(figures).contains("Increase that setting."))
    }

    @Test("a period exists if it is a month, a plan that never resets, or has usage")
    func periodsThatExist() {
        let figures = DashboardFixtures.overview
        func exists(_ label: String, _ periods: AllPeriods?, _ billing: BillingOverview?) -> Bool {
            DashboardFigures.mayExist(billingPeriod(label), periods, billing)
        }
        let (periods, billing) = (figures.periods.value, figures.billing.value)
        for label in ["open", "2026-11", "1999-12", "trial"] { #expect(exists(label, periods, billing), "\(label)") }
        for label in ["xx", "paid"] {
            #expect(!exists(label, periods, billing), "\(label)")
            #expect(exists(label, nil, billing) && exists(label, periods, nil), "unknown until both are loaded")
        }
    }
}
