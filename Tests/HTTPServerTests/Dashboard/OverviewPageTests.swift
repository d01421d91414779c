import Engine
import Foundation
import TestSupport
import Testing
import Usage

@testable import HTTPServer

@Suite("The page")
struct OverviewPageTests {
    private let library: PageLibrary

    init() throws {
        library = try PageLibrary()
    }

    private func overview(_ figures: OverviewFigures = DashboardFixtures.overview) -> String {
        library.render(.overview, OverviewPresenter(figures: figures).page(DashboardFixtures.frame("Overview")))
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
        // Ten users, and the one of a failed event.
        #expect(page.components(separatedBy: "/dashboard/users/7f1c0a52").count - 1 == 11)
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

    @Test("of the overview offers the current month, and the one that somebody chose, where nobody has used them")
    func monthsWithoutUsage() {
        var figures = DashboardFixtures.overview
        let old = DashboardFixtures.report("2025-02", messages: 7, silent: 1, gentle: 0, prominent: 0, blocked: 0)
        figures.periods = .known(
            AllPeriods(current: billingPeriod("2026-12"), open: PeriodReport(period: .open), reports: [old]),
            age: .zero,
            trouble: nil
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

    @Test("of the overview says what is missing, and why")
    func missing() {
        var figures = DashboardFixtures.overview
        figures.periods = .counting
        figures.days = .missing(EngineError(.unavailable, "away"))
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
        figures.records = .known(OverviewRecords(plans: Plan.initial), age: .zero, trouble: nil)
        let page = overview(figures)
        #expect(page.contains("What to do first") && page.contains("headroom token create backend --scope chat"))
        #expect(!page.contains("<svg class=\"columns\""), "nothing is drawn that would be empty")
        #expect(page.contains("<section data-part=\"glance\" hidden>"))
        figures.period = billingPeriod("2026-11")
        #expect(overview(figures).contains("Nobody has used anything in this period."))
        #expect(!overview(figures).contains("What to do first"), "a month that somebody chose is shown")
        #expect(!overview().contains("What to do first"))
        // As long as something is not known, somebody may have sent a message.
        figures.period = .open
        figures.days = .counting
        #expect(!overview(figures).contains("What to do first"))
    }

    @Test("of the overview draws no months where only trials were used")
    func trialsOnly() {
        var figures = DashboardFixtures.overview
        let trial = DashboardFixtures.report("trial", messages: 3, silent: 1, gentle: 0, prominent: 0, blocked: 0)
        figures.periods = .known(
            AllPeriods(current: billingPeriod("2026-11"), open: trial, reports: [trial]),
            age: .zero,
            trouble: nil
        )
        #expect(!overview(figures).contains("id=\"history-title\""))
        #expect(overview(figures).contains("Nobody has used a monthly plan in these months."))
        #expect(overview().contains("id=\"history-title\""))
    }

    @Test("of the overview has plans, trials and the store events that failed")
    func plans() {
        let page = overview()
        for text in [
            "Premium <span class=\"muted\">paid</span></th><td class=\"number\">11,100</td>", "800 a month",
            "unlimited",
            "100 in 3 days", "no plan named", "Trial: running now</dt><dd>301</dd>", "Trial: used up</dt><dd>111</dd>",
            "Trial: over</dt><dd>819</dd>", "2 store events failed.", "the product gold_monthly is not mapped",
            "/dashboard/users/\(TestSupport.user(3))", "no user is known for the customer",
            "headroom events replay --failed",
        ] {
            #expect(page.contains(text), "\(text)")
        }
        var figures = DashboardFixtures.overview
        figures.records = .known(OverviewRecords(plans: [DashboardFixtures.paid]), age: .zero, trouble: nil)
        #expect(overview(figures).contains("None. Every event that a store sent was understood."))
        // Of a month only the plans that somebody had in it.
        figures = DashboardFixtures.overview
        figures.period = billingPeriod("2026-11")
        #expect(overview(figures).contains(">Premium <span") && !overview(figures).contains(">Pro <span"))
        figures.period = billingPeriod("1999-12")
        figures.top = .counting
        #expect(!overview(figures).contains("800 a month") && overview(figures).contains("Trial: running now"))
        #expect(overview(figures).contains("Nobody has sent a message in this period."))
        figures = DashboardFixtures.overview
        figures.records = .known(OverviewRecords(plans: [DashboardFixtures.paid]), age: .zero, trouble: nil)
        #expect(!overview(figures).contains("store events failed."))
        figures.records = .known(
            OverviewRecords(failedCount: OverviewRecords.failedCountMaximum),
            age: .zero,
            trouble: nil
        )
        #expect(overview(figures).contains("10,000 store events or more failed."))
    }

    @Test("of the overview says that a newer figure is being read, and fetches it soon")
    func renewing() {
        #expect(overview().contains("data-refresh=\"15\""))
        var figures = DashboardFixtures.overview
        figures.top = .known([], age: .seconds(180), trouble: nil, isRenewing: true)
        #expect(overview(figures).contains("data-refresh=\"2\""))
        guard case .known(let periods, _, _, _) = figures.periods else { return }
        figures.periods = .known(periods, age: .seconds(180), trouble: nil, isRenewing: true)
        #expect(overview(figures).contains("Counted 3 min ago, and being read again now."))
        figures.periods = .known(periods, age: .seconds(180), trouble: .readingTookTooLong)
        #expect(overview(figures).contains("Not everything can be read."))
        #expect(overview(figures).contains("Start the service with a larger one."))
    }

    @Test("is there for a month, for a plan that never resets, and for whatever somebody has used")
    func periodsThatExist() {
        let figures = DashboardFixtures.overview
        func exists(_ label: String, _ periods: AllPeriods?, _ records: OverviewRecords?) -> Bool {
            DashboardFigures.mayExist(billingPeriod(label), periods, records)
        }
        let (periods, records) = (figures.periods.value, figures.records.value)
        for label in ["open", "2026-11", "1999-12", "trial"] { #expect(exists(label, periods, records), "\(label)") }
        for label in ["xx", "paid"] {
            #expect(!exists(label, periods, records), "\(label)")
            #expect(exists(label, nil, records) && exists(label, periods, nil), "nobody can say yet")
        }
    }
}
