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
            (29, "2100-02-28", "2100-02", "2100-02-28", "2100-03-29"),
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
}

@Suite("A week or a day of a time zone")
struct LocalCycleTests {
    private func plan(_ cycle: Plan.Cycle, _ zone: String?) -> Plan {
        Plan(name: "local", label: "Local", cycle: cycle, timeZone: zone, allowance: 20)
    }

    @Test(
        "begins at midnight there, also if clocks change",
        arguments: [
            // cycle, time zone, label, start, end
            (.daily, nil, "2026-11-22", "2026-11-22", "2026-11-23"),
            (.daily, "Asia/Tokyo", "2026-11-22", "2026-11-21T15:00:00Z", "2026-11-22T15:00:00Z"),
            (.daily, "Europe/Berlin", "2026-03-29", "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"),
            (.daily, "Europe/Berlin", "2026-10-25", "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z"),
            (.daily, "Atlantic/Azores", "2026-03-29", "2026-03-29T01:00:00Z", "2026-03-30"),
            (.daily, "Atlantic/Azores", "2026-10-25", "2026-10-25", "2026-10-26T01:00:00Z"),
            (.daily, "America/Havana", "2026-11-01", "2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z"),
            (.weekly, nil, "2026-W47", "2026-11-16", "2026-11-23"),
            (.weekly, nil, "2026-W53", "2026-12-28", "2027-01-04"),
            (.weekly, nil, "2027-W01", "2027-01-04", "2027-01-11"),
            (.weekly, "America/New_York", "2026-W44", "2026-10-26T04:00:00Z", "2026-11-02T05:00:00Z"),
        ] as [(Plan.Cycle, String?, String, String, String)]
    )
    func known(cycle: Plan.Cycle, zone: String?, label: String, start: String, end: String) throws {
        let plan = plan(cycle, zone)
        for instant in [at(start), at(end).justBefore] {
            let found = try #require(BillingCycle(containing: instant, plan: plan))
            #expect(found.period == billingPeriod(label))
            #expect(found.start == at(start))
            #expect(found.end == at(end))
        }
    }

    @Test("follows the previous one without a gap, and none comes twice", arguments: [Plan.Cycle.weekly, .daily])
    func successive(cycle: Plan.Cycle) throws {
        for zone in ["Europe/Berlin", "Atlantic/Azores", "America/Havana", "Pacific/Kiritimati"] {
            let plan = plan(cycle, zone)
            var current = try #require(BillingCycle(containing: at("2026-01-05T12:00:00Z"), plan: plan))
            for _ in 0..<400 {
                let next = try #require(BillingCycle(containing: current.end, plan: plan))
                #expect(next.start == current.end)
                #expect(next.period.label > current.period.label)
                let day = try #require(current.period.nextDay)
                #expect(next.period == (cycle == .daily ? BillingPeriod(day: day) : BillingPeriod(weekOf: day)))
                current = next
            }
        }
    }
}

@Suite("A billing period's label")
struct BillingPeriodTests {
    @Test("is the ISO week of a weekly period, which belongs to the year of its Thursday")
    func weeks() {
        for (day, label) in [
            ("2026-11-16", "2026-W47"), ("2026-11-22", "2026-W47"), ("2026-11-23", "2026-W48"),
            ("2025-12-29", "2026-W01"), ("2026-01-04", "2026-W01"), ("2026-12-31", "2026-W53"),
            ("2027-01-03", "2026-W53"), ("2027-01-04", "2027-W01"), ("2028-01-02", "2027-W52"),
        ] {
            #expect(BillingPeriod(weekOf: at(day).date).label == label)
        }
        #expect(billingPeriod("2026-W53").week.map { [$0.year, $0.week] } == [2026, 53])
        #expect(billingPeriod("2026-W53").nextDay == at("2027-01-04").date)
        #expect(billingPeriod("2026-W53").month == nil && billingPeriod("2026-W53").day == nil)
    }

    @Test("is the day of a daily period")
    func days() {
        #expect(BillingPeriod(day: CivilDate(year: 2026, month: 3, day: 9)).label == "2026-03-09")
        #expect(billingPeriod("2028-02-29").day == CivilDate(year: 2028, month: 2, day: 29))
        #expect(billingPeriod("2026-12-31").nextDay == at("2027-01-01").date)
        #expect(billingPeriod("2026-12-31").month == nil && billingPeriod("2026-12-31").week == nil)
        #expect(billingPeriod("2026-12").nextDay == nil && billingPeriod("trial").nextDay == nil)
    }

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

    @Test("has a number behind the month or week for a user's second period in it, and so on")
    func numbers() {
        for (label, number, unnumbered) in [
            ("2026-03.2", 2, "2026-03"), ("2026-03.10", 10, "2026-03"), ("2026-03.999", 999, "2026-03"),
            ("2026-W12.2", 2, "2026-W12"), ("2026-03", 1, "2026-03"), ("2026-W12", 1, "2026-W12"),
            ("2026-03-20", 1, "2026-03-20"), ("trial", 1, "trial"),
        ] {
            #expect(billingPeriod(label).number == number)
            #expect(billingPeriod(label).unnumbered == billingPeriod(unnumbered))
        }
        #expect(billingPeriod("2026-03.2").month.map { [$0.year, $0.month] } == [2026, 3])
        #expect(billingPeriod("2026-W12.2").week.map { [$0.year, $0.week] } == [2026, 12])
        #expect(billingPeriod("2026-03.2").week == nil && billingPeriod("2026-03.2").day == nil)
        #expect(billingPeriod("2026-01.2").previousMonth == billingPeriod("2025-12"))
        // Not a month's label.
        #expect(BillingPeriod(storedLabel: "v1.2").number == 1)
        #expect(BillingPeriod(storedLabel: "v1.2").unnumbered.label == "v1.2")
    }

    @Test(
        "is invalid in any other form",
        arguments: [
            "", "2026", "2026-00", "2026-13", "2026-1", "2026-111", "2026/11", "20a6-11", "2026-1१", "Trial", "TRIAL",
            "2026-W00", "2026-W54", "2025-W53", "2026-w01", "2026-W1", "0000-W01", "2026-11-00", "2026-11-31",
            "2026-02-29", "2026-13-01", "0000-01-01", "2026-11-1", "2026-11-1१", "2026-11-011", "26-11-01",
            "2026-03.", "2026-03.0", "2026-03.1", "2026-03.02", "2026-03.1000", "2026-03.2.2", "2026-03.a",
            "2026-03.+2",
            "2026-03.२", "2026-03-20.2", "2026-13.2", "2026-W54.2", "trial.2", ".2", "2026-03 .2",
            "9trial", "_trial", "my plan", "my-plan", "triål", "a23456789012345678901234567890123",
        ]
    )
    func rejection(label: String) { #expect(BillingPeriod(label) == nil) }

    @Test("from the database is not validated")
    func stored() {
        #expect(BillingPeriod(storedLabel: "Winter 26").label == "Winter 26")
        #expect(BillingPeriod("a2345678901234567890123456789012")?.label == "a2345678901234567890123456789012")
    }
}
