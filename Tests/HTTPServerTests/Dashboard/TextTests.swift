import TestSupport
import Testing
import Usage

@testable import HTTPServer

@Suite("Texts of the pages")
struct TextTests {
    @Test(
        "Numbers have their thousands apart",
        arguments: [
            (0, "0"), (7, "7"), (999, "999"), (1_000, "1,000"), (12_345, "12,345"), (1_234_567, "1,234,567"),
            (-4_200, "-4,200"),
        ]
    )
    func grouped(number: Int, text: String) {
        #expect(NumberText.grouped(number) == text)
    }

    @Test(
        "An axis has them short",
        arguments: [
            (0, "0"), (950, "950"), (1_000, "1k"), (1_500, "1.5k"), (1_999, "1.9k"), (20_000, "20k"),
            (2_500_000, "2.5M"),
            (3_000_000_000, "3G"),
        ]
    )
    func compact(number: Int, text: String) {
        #expect(NumberText.compact(number) == text)
    }

    @Test(
        "A share never reads as nothing or all when it is not",
        arguments: [
            (0, 0, "0.0 %"), (0, 10, "0.0 %"), (10, 10, "100.0 %"), (1, 8, "12.5 %"), (160, 4_000, "4.0 %"),
            (1, 1_000_000, "< 0.1 %"),
            (999_999, 1_000_000, "> 99.9 %"), (820, 800, "102.5 %"),
        ]
    )
    func percent(part: Int, whole: Int, text: String) {
        #expect(NumberText.percent(part, of: whole) == text)
    }

    @Test(
        "A figure's age is told in the unit that fits",
        arguments: [
            (0, "just now"), (1, "just now"), (2, "2 s ago"), (119, "119 s ago"), (120, "2 min ago"),
            (7_199, "119 min ago"), (7_200, "2 h ago"),
        ]
    )
    func age(seconds: Int, text: String) {
        #expect(NumberText.age(.seconds(seconds)) == text)
    }

    @Test("One is singular")
    func count() {
        #expect(NumberText.count(1, "message") == "1 message")
        #expect(NumberText.count(0, "message") == "0 messages")
        #expect(NumberText.count(1_000, "message") == "1,000 messages")
    }

    @Test("An instant says that it is in UTC, and has its seconds where there are any")
    func instants() {
        let text = TimeText(at("2026-11-21T07:05:09Z"))
        #expect(text.machine == "2026-11-21T07:05:09Z")
        #expect(text.person == "21 November 2026, 07:05:09 UTC")
        #expect(TimeText(at("2026-12-01")).person == "1 December 2026, 00:00 UTC")
    }

    @Test("A period is a month's name, or its own")
    func periods() {
        #expect(TimeText.period(billingPeriod("2026-02")) == "February 2026")
        #expect(TimeText.shortPeriod(billingPeriod("2005-09")) == "Sep 05")
        #expect(TimeText.period(billingPeriod("trial")) == "trial")
        #expect(TimeText.shortDay(CivilDate(year: 2026, month: 5, day: 3)) == "3 May")
    }

    @Test("Live figures are those of INFO, and their event is JSON")
    func live() {
        let figures = DashboardFixtures.overview.live
        #expect(figures.rateText == "1,284")
        #expect(figures.p99Text == "1.84 ms")
        #expect(figures.sentence == "1,284 answers a second, 3 requests waiting, the database is up.")
        #expect(figures.event.hasPrefix("event: figures\ndata: {"))
        #expect(figures.event.hasSuffix("}\n\n"))
        let idle = LiveFigures(info: ["answers_per_second=0.0", "queue_depth=0", "database=down", "nonsense"])
        #expect((idle.rateText, idle.p99Text, idle.database) == ("0", "–", .down))
        #expect(LiveFigures(info: ["answers_per_second=99.9", "latency_p99_us=1234567"]).rateText == "99.9")
        #expect(LiveFigures(info: ["latency_p99_us=1234567"]).p99Text == "1.23 s")
        #expect(LiveFigures(info: ["latency_p99_us=45678"]).p99Text == "45 ms")
    }
}
