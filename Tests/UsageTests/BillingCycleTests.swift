import TestSupport
import Testing
import Usage

@Suite("A billing cycle")
struct BillingCycleTests {
    @Test(
        "begins on the anchor day, or on the last day of a shorter month, and is labelled with that month",
        arguments: [
            // anchor day, instant, period, start, end
            (1, "2026-11-24T09:30:00Z", "2026-11", "2026-11-01", "2026-12-01"),
            (1, "2026-12-31T23:59:59Z", "2026-12", "2026-12-01", "2027-01-01"),
            (1, "2027-01-01", "2027-01", "2027-01-01", "2027-02-01"),
            (1, "2028-02-29", "2028-02", "2028-02-01", "2028-03-01"),
            (15, "2026-11-14T23:59:59Z", "2026-10", "2026-10-15", "2026-11-15"),
            (15, "2026-11-15", "2026-11", "2026-11-15", "2026-12-15"),
            (15, "2027-01-14", "2026-12", "2026-12-15", "2027-01-15"),
            (29, "2027-02-27", "2027-01", "2027-01-29", "2027-02-28"),
            (29, "2027-02-28", "2027-02", "2027-02-28", "2027-03-29"),
            (29, "2028-02-28", "2028-01", "2028-01-29", "2028-02-29"),
            (29, "2028-02-29", "2028-02", "2028-02-29", "2028-03-29"),
            (30, "2027-02-28", "2027-02", "2027-02-28", "2027-03-30"),
            (30, "2028-02-28", "2028-01", "2028-01-30", "2028-02-29"),
            (30, "2028-03-29", "2028-02", "2028-02-29", "2028-03-30"),
            (30, "2026-12-30", "2026-12", "2026-12-30", "2027-01-30"),
            (31, "2027-01-30", "2026-12", "2026-12-31", "2027-01-31"),
            (31, "2027-02-27", "2027-01", "2027-01-31", "2027-02-28"),
            (31, "2027-02-28", "2027-02", "2027-02-28", "2027-03-31"),
            (31, "2027-03-30", "2027-02", "2027-02-28", "2027-03-31"),
            (31, "2028-02-29", "2028-02", "2028-02-29", "2028-03-31"),
            (31, "2027-04-29", "2027-03", "2027-03-31", "2027-04-30"),
            (31, "2027-04-30", "2027-04", "2027-04-30", "2027-05-31"),
            (31, "2026-12-31", "2026-12", "2026-12-31", "2027-01-31"),
        ]
    )
    func known(anchorDay: Int, instant: String, label: String, start: String, end: String) {
        let cycle = BillingCycle(containing: at(instant), anchorDay: anchorDay)
        #expect(cycle.period == billingPeriod(label))
        #expect(cycle.start == at(start))
        #expect(cycle.end == at(end))
    }

    @Test("follows the previous one without a gap, and no month begins twice", arguments: [1, 15, 28, 29, 30, 31])
    func successive(anchorDay: Int) {
        var cycle = BillingCycle(containing: at("2026-06-20"), anchorDay: anchorDay)
        for _ in 0..<60 {
            #expect(BillingCycle(containing: cycle.start, anchorDay: anchorDay) == cycle)
            #expect(BillingCycle(containing: cycle.end.justBefore, anchorDay: anchorDay) == cycle)
            let next = BillingCycle(containing: cycle.end, anchorDay: anchorDay)
            #expect(next.start == cycle.end)
            #expect(next.period.label > cycle.period.label)
            cycle = next
        }
    }
}

@Suite("A billing period's label")
struct BillingPeriodTests {
    @Test("is the month, or the name of a plan that never resets")
    func labels() {
        #expect(BillingPeriod(year: 2026, month: 3).label == "2026-03")
        #expect(BillingPeriod(year: 2026, month: 12).label == "2026-12")
        #expect(BillingPeriod(year: 987, month: 1).label == "0987-01")
        #expect(BillingPeriod(planNamed: "trial").label == "trial")
        #expect(billingPeriod("2026-11").month.map { [$0.year, $0.month] } == [2026, 11])
        #expect(billingPeriod("trial").month == nil)
        #expect("\(billingPeriod("2026-11"))" == "2026-11")
    }

    @Test(
        "is invalid in any other form",
        arguments: [
            "", "2026", "2026-00", "2026-13", "2026-1", "2026-111", "2026/11", "20a6-11", "2026-1१", "Trial", "TRIAL",
            "9trial", "_trial", "my plan", "my-plan", "triål", "a23456789012345678901234567890123",
        ]
    )
    func rejection(label: String) {
        #expect(BillingPeriod(label) == nil)
    }

    @Test("from the database is not validated")
    func stored() {
        #expect(BillingPeriod(storedLabel: "Winter 26").label == "Winter 26")
        #expect(BillingPeriod("a2345678901234567890123456789012")?.label == "a2345678901234567890123456789012")
    }
}
