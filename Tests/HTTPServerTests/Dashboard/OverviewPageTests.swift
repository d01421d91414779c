import Engine
import Foundation
import TestSupport
import Testing
import Usage

@testable import HTTPServer

@Suite("The overview")
struct OverviewPageTests {
    private let library: PageLibrary

    init() throws {
        library = try PageLibrary()
    }

    private func overview(_ figures: OverviewFigures = DashboardFixtures.overview) -> String {
        library.render(.overview, OverviewPresenter(figures: figures).page(DashboardFixtures.frame("Overview")))
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
        for text in ["1,284,091", "11,952", "207", "1.7 %", "10,412"] {
            #expect(page.contains(text), "\(text)")
        }
        #expect(page.contains("<option value=\"open\">Open now</option>"))
        #expect(page.contains("<option value=\"2026-11\" selected>November 2026 (this month)</option>"))
    }

    @Test("the current and the selected month can be chosen even without usage")
    func monthsWithoutUsage() {
        var figures = DashboardFixtures.overview
        let old = DashboardFixtures.report("2025-02", messages: 7, silent: 1, gentle: 0, prominent: 0, blocked: 0)
        figures.periods = .loaded(
            AllPeriods(current: billingPeriod("2026-12"), open: PeriodReport(period: .open), reports: [old]),
            age: .zero,
            error: nil
        )
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
        figures.top = .loaded([], age: .zero, error: nil)
        let presenter = OverviewPresenter(figures: figures)
        #expect(presenter.isIncomplete)
        let page = overview(figures)
        #expect(page.contains("Still counting"))
        #expect(page.contains("The database cannot be reached at the moment."))
        #expect(page.contains("No messages in this period."))
        #expect(!OverviewPresenter(figures: DashboardFixtures.overview).isIncomplete)
    }

    @Test("a new installation shows first steps")
    func empty() {
        var figures = DashboardFixtures.overview
        figures.periods = .loaded(
            AllPeriods(current: billingPeriod("2026-11"), open: PeriodReport(period: .open), reports: []),
            age: .zero,
            error: nil
        )
        figures.top = .loaded([], age: .zero, error: nil)
        figures.days = .loaded([], age: .zero, error: nil)
        figures.billing = .loaded(BillingOverview(plans: Plan.initial), age: .zero, error: nil)
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
        let trial = DashboardFixtures.report("trial", messages: 3, silent: 1, gentle: 0, prominent: 0, blocked: 0)
        figures.periods = .loaded(
            AllPeriods(current: billingPeriod("2026-11"), open: trial, reports: [trial]),
            age: .zero,
            error: nil
        )
        #expect(!overview(figures).contains("id=\"history-title\""))
        #expect(overview(figures).contains("No usage of monthly plans in these months."))
        #expect(overview().contains("id=\"history-title\""))
    }

    @Test("shows plans, trials and failed store events")
    func plans() {
        let page = overview()
        for text in [
            "Premium <span class=\"muted\">paid</span></th><td class=\"number\">11,100</td>", "800 a month",
            "unlimited",
            "100 in 3 days", "no plan", "Trial: running now</dt><dd>301</dd>", "Trial: used up</dt><dd>111</dd>",
            "Trial: over</dt><dd>819</dd>", "2 store events failed.", "the product gold_monthly is not mapped",
            "/dashboard/users/\(TestSupport.user(3))", "no user is known for the customer",
            "headroom events replay --failed",
        ] {
            #expect(page.contains(text), "\(text)")
        }
        var figures = DashboardFixtures.overview
        figures.billing = .loaded(BillingOverview(plans: [DashboardFixtures.paid]), age: .zero, error: nil)
        #expect(overview(figures).contains("No store event has failed."))
        // For a month, only plans with users are listed.
        figures = DashboardFixtures.overview
        figures.period = billingPeriod("2026-11")
        #expect(overview(figures).contains(">Premium <span") && !overview(figures).contains(">Pro <span"))
        figures.period = billingPeriod("1999-12")
        figures.top = .loading
        #expect(!overview(figures).contains("800 a month") && overview(figures).contains("Trial: running now"))
        #expect(overview(figures).contains("No messages in this period."))
        figures = DashboardFixtures.overview
        figures.billing = .loaded(BillingOverview(plans: [DashboardFixtures.paid]), age: .zero, error: nil)
        #expect(!overview(figures).contains("store events failed."))
        figures.billing = .loaded(
            BillingOverview(failedCount: BillingOverview.failedCountMaximum),
            age: .zero,
            error: nil
        )
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

    @Test("lists a bounded number of periods, with the current and the selected one")
    func manyPeriods() {
        var figures = DashboardFixtures.overview
        let months = (0..<2_000).map { BillingPeriod(year: 1_800 + $0 / 12, month: $0 % 12 + 1) }
        let plans = (0..<2_000).map { BillingPeriod(planNamed: "made_up_\($0)") }
        figures.periods = .loaded(
            AllPeriods(
                current: billingPeriod("2026-11"),
                open: PeriodReport(period: .open),
                reports: (months + plans).map { PeriodReport(period: $0) }
            ),
            age: .seconds(3),
            error: nil
        )
        for selected in [billingPeriod("1801-02"), plans[1_999]] {
            figures.period = selected
            let page = overview(figures)
            #expect(page.contains("value=\"2026-11\"") && page.contains("value=\"\(selected.label)\""))
            #expect(page.components(separatedBy: "<option").count < 110)
            #expect(page.utf8.count < 60_000)
        }
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
