import Testing
import Usage

@testable import UsageStore

@Suite("Hints about billing periods")
struct PeriodHintsTests {
    private let november = billingPeriod("2026-11")

    private func standing(
        _ period: String,
        used: Int = 0,
        limit: Int? = 10,
        lapse: Refusal? = nil,
        at instant: String = "2026-11-10"
    ) -> Standing {
        Standing(
            plan: .paid,
            state: .active,
            period: billingPeriod(period),
            used: used,
            limit: limit,
            lapse: lapse,
            startedAt: at("2026-11-01"),
            observedAt: at(instant)
        )
    }

    @Test("expect users in the calendar month until told otherwise")
    func calendarMonth() {
        var hints = PeriodHints(calendarMonth: november)
        #expect(hints.period(of: user(1)) == november)
        hints.learn(user(1), standing("trial"))
        hints.learn(user(2), standing("2026-10"))
        hints.learn(user(3), standing("2026-11"))
        #expect(hints.period(of: user(1)).label == "trial")
        #expect(hints.period(of: user(2)).label == "2026-10")
        #expect(hints.period(of: user(3)) == november)
        hints.learn(user(1), standing("2026-11"))
        #expect(hints.period(of: user(1)) == november)
    }

    @Test("remember who has nothing left, and forget it when something is")
    func exhausted() {
        var hints = PeriodHints(calendarMonth: november)
        #expect(!hints.isExhausted(user(1)))
        hints.learn(user(1), standing("2026-11", used: 10))
        hints.learn(user(2), standing("trial", used: 9))
        hints.learn(user(3), standing("2026-11", lapse: .revoked))
        #expect(hints.isExhausted(user(1)))
        #expect(!hints.isExhausted(user(2)))
        #expect(hints.isExhausted(user(3)))
        hints.learn(user(1), standing("2026-11", used: 10, limit: nil))
        #expect(!hints.isExhausted(user(1)))
    }

    @Test("are forgotten when the database's clock says another month")
    func newMonth() {
        var hints = PeriodHints(calendarMonth: november)
        hints.learn(user(1), standing("2026-10"))
        hints.learn(user(2), standing("2026-11", used: 10))
        hints.learn(user(3), standing("2026-12", at: "2026-12-01"))
        #expect(hints.calendarMonth.label == "2026-12")
        #expect(hints.period(of: user(1)).label == "2026-12")
        #expect(!hints.isExhausted(user(2)))
        hints.observe(billingPeriod("2027-01"))
        #expect(hints.period(of: user(3)).label == "2027-01")
    }

    @Test("stay when the month that is observed is the known one")
    func sameMonth() {
        var hints = PeriodHints(calendarMonth: november)
        hints.learn(user(1), standing("trial"))
        hints.observe(november)
        #expect(hints.period(of: user(1)).label == "trial")
    }

    @Test("find the period of the same month a year later")
    func yearLater() {
        var hints = PeriodHints(calendarMonth: november)
        hints.learn(user(1), standing("2027-11", at: "2027-11-10"))
        #expect(hints.period(of: user(1)).label == "2027-11")
    }

    @Test("are all dropped rather than kept beyond the capacity")
    func capacity() {
        var hints = PeriodHints(calendarMonth: november, capacity: 2)
        hints.learn(user(1), standing("trial"))
        hints.learn(user(2), standing("trial"))
        hints.learn(user(3), standing("trial"))
        #expect(hints.period(of: user(1)) == november)
        #expect(hints.period(of: user(2)) == november)
        #expect(hints.period(of: user(3)).label == "trial")
    }
}
