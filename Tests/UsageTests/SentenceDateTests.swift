import Foundation
import TestSupport
import Testing

@testable import Usage

@Suite("Dates in sentences")
struct SentenceDateTests {
    private func zone(_ name: String) throws -> CivilTimeZone { try #require(CivilTimeZone(name)) }

    private func cancelled(expires: String, at now: String) -> UsageSnapshot {
        .monthly(used: 1, state: .cancelled, expiresAt: at(expires), observedAt: at(now))
    }

    @Test("have the year if it is another one than the answer's, in the time zone of the sentence")
    func years() throws {
        func notice(_ expires: String, _ now: String, _ zone: CivilTimeZone? = nil) -> String? {
            cancelled(expires: expires, at: now).notice(in: zone)?.text
        }
        func until(_ date: String) -> String {
            "Your subscription is active until \(date). You can resubscribe anytime."
        }
        #expect(notice("2027-11-20", "2026-11-10") == until("November 20, 2027"))
        #expect(notice("2026-12-31T23:59:59Z", "2026-11-10") == until("December 31"))
        #expect(notice("2027-01-01", "2026-11-10") == until("January 1, 2027"))
        #expect(notice("2027-01-01", "2026-11-10", try zone("America/New_York")) == until("December 31"))
        // In Tokyo the new year has begun.
        #expect(notice("2026-12-31T16:00:00Z", "2026-11-10", try zone("Asia/Tokyo")) == until("January 1, 2027"))
        let german = Words.shipped.vocabulary(for: LanguageTag("de"))
        let phrase = cancelled(expires: "2027-11-20", at: "2026-11-10").notice
        #expect(phrase?.text(in: german).contains("bis zum 20. November 2027.") == true)
        let renewed = UsageSnapshot.monthly(used: 799, observedAt: at("2026-11-30"))
        #expect(renewed.banner?.text == "Almost there — 1 message left until December 1")
        var inDecember = renewed
        (inDecember.observedAt, inDecember.resetsAt) = (at("2026-12-10"), at("2027-01-01"))
        #expect(inDecember.banner?.text == "Almost there — 1 message left until January 1, 2027")
        inDecember.used = 640
        #expect(inDecember.banner?.text == "You have 160 conversations left this month")
    }

    @Test("are those of the request's time zone, of the plan's, or of UTC")
    func zones() throws {
        let week = UsageSnapshot(
            plan: Plan(name: "week", label: "Week", cycle: .weekly, timeZone: "Asia/Tokyo", allowance: 20),
            state: .active,
            period: billingPeriod("2026-W47"),
            used: 19,
            limit: 20,
            startedAt: at("2026-11-15T15:00:00Z"),
            // A Monday in Tokyo.
            resetsAt: at("2026-11-22T15:00:00Z"),
            observedAt: at("2026-11-20")
        )
        func until(_ date: String) -> String { "Almost there — 1 message left until \(date)" }
        #expect(week.banner?.text == until("November 23"))
        #expect(week.banner(at: week.tier, in: try zone("Europe/Berlin"))?.text == until("November 22"))
        #expect(week.accessible(in: try zone("UTC")).text.hasSuffix("until November 22"))
        // A zone that only the database knows.
        var unknown = week
        unknown.plan = Plan(name: "week", label: "Week", cycle: .weekly, timeZone: "Mars/Olympus", allowance: 20)
        #expect(unknown.banner?.text == until("November 22"))
    }

    @Test("name this month only if it ends with the period, at midnight in the time zone of the sentence")
    func thisMonth() throws {
        func texts(_ resets: String, _ observed: String, _ zone: CivilTimeZone? = nil) -> [String] {
            var snapshot = UsageSnapshot.monthly(used: 640, observedAt: at(observed))
            snapshot.resetsAt = at(resets)
            return [snapshot.banner(at: .gentle, in: zone)?.text ?? "", snapshot.accessible(in: zone).text]
        }
        func expected(_ date: String?) -> [String] {
            let period = date.map { "in the period until \($0)" } ?? "this month"
            let left = date.map { "until \($0)" } ?? "this month"
            return ["You have 160 conversations left \(left)", "640 of 800 messages used \(period)"]
        }
        let (berlin, losAngeles) = (try zone("Europe/Berlin"), try zone("America/Los_Angeles"))
        #expect(texts("2026-12-01", "2026-11-10") == expected(nil))
        #expect(texts("2026-12-01", "2026-11-10", try zone("UTC")) == expected(nil))
        #expect(texts("2026-12-01", "2026-11-10", berlin) == expected("December 1"))
        #expect(texts("2026-12-01", "2026-11-10", losAngeles) == expected("November 30"))
        // Midnight in Berlin.
        #expect(texts("2026-11-30T23:00:00Z", "2026-11-10", berlin) == expected(nil))
        #expect(texts("2026-11-30T23:00:00Z", "2026-11-10") == expected("November 30"))
        // A period of a payment on the first, and one that begins in the last days of another month.
        #expect(texts("2026-12-01T18:00:00Z", "2026-11-10") == expected("December 1"))
        #expect(texts("2026-12-01", "2026-10-29") == expected("December 1"))
        let blocked = UsageSnapshot.monthly(used: 800)
        #expect(
            blocked.banner(at: .blocked, in: losAngeles)?.text
                == "We've had a lot of great conversations! Your next session refreshes on November 30."
        )
    }

    @Test("say on the last day of a trial when it ends")
    func lastDay() throws {
        func banner(_ used: Int, _ observed: String, _ zone: CivilTimeZone? = nil) -> String? {
            let trial = UsageSnapshot.trial(used: used, observedAt: at(observed))
            return trial.banner(at: trial.tier, in: zone)?.text
        }
        #expect(banner(41, "2026-11-12T09:29:59Z") == "59 of 100 trial messages remaining")
        let lastDay = "2026-11-12T09:30:00Z"
        #expect(banner(41, lastDay) == "Your trial ends November 13 — 59 of 100 messages are left.")
        #expect(banner(99, lastDay) == "Your trial ends November 13 — 1 of 100 messages is left.")
        #expect(
            banner(0, lastDay, try zone("Pacific/Kiritimati"))
                == "Your trial ends November 13 — 100 of 100 messages are left."
        )
        #expect(
            banner(0, lastDay, try zone("Pacific/Pago_Pago"))
                == "Your trial ends November 12 — 100 of 100 messages are left."
        )
        #expect(banner(100, lastDay) == "You've used your trial sessions — ready to continue?")
    }

    @Test("are in any of IANA's time zones, in its spelling")
    func names() throws {
        for name in [
            "UTC", "GMT", "Europe/Berlin", "Asia/Calcutta", "Asia/Kolkata", "Europe/Kyiv", "US/Pacific", "Japan", "EST",
            "EST5EDT", "NZ", "W-SU", "Etc/GMT+5", "America/Argentina/Buenos_Aires",
        ] {
            #expect(CivilTimeZone(name)?.name == name)
        }
        for name in [
            "", "utc", "europe/berlin", "EUROPE/BERLIN", "Europe", "Europe/", "/Europe/Berlin", "Europe/Berlin ",
            "../Europe/Berlin", "Europe/../Europe/Berlin", "../../etc/passwd", "GMT+3", "UTC+3", "+03:00", "IST", "PST",
            "CEST", "SystemV/EST5EDT", "Mars/Olympus", "Europe/Berlin\0", "Etc/Unknown", "localtime", "posixrules",
            String(repeating: "A", count: 65), String(repeating: "a/", count: 5_000),
        ] {
            #expect(CivilTimeZone(name) == nil, "\(name)")
        }
    }

    @Test("are Foundation's in every zone, also when clocks change")
    func calendar() throws {
        var random = SeededGenerator(seed: 3)
        for name in ["Europe/Berlin", "America/St_Johns", "Asia/Kathmandu", "Pacific/Apia", "Africa/Casablanca"] {
            var calendar = Calendar(identifier: .gregorian)
            calendar.timeZone = try #require(TimeZone(identifier: name))
            for _ in 0..<200 {
                let instant = Instant(secondsSince1970: .random(in: 946_684_800...4_102_444_800, using: &random))
                let date = Date(timeIntervalSince1970: TimeInterval(instant.secondsSince1970))
                let parts = calendar.dateComponents([.year, .month, .day, .hour, .minute, .second], from: date)
                let day = CivilDate(year: parts.year!, month: parts.month!, day: parts.day!)
                let second = parts.hour! * 3_600 + parts.minute! * 60 + parts.second!
                #expect(instant.civilSeconds(in: try zone(name)) == day.daysSince1970 * 86_400 + Int64(second))
            }
        }
    }
}
