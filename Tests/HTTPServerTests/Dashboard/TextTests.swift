import NIOCore
import TestSupport
import Testing
import Usage

@testable import HTTPServer

@Suite("Texts of the pages")
struct TextTests {
    @Test(
        "numbers have commas between thousands",
        arguments: [
            (0, "0"), (7, "7"), (999, "999"), (1_000, "1,000"), (12_345, "12,345"), (1_234_567, "1,234,567"),
            (-4_200, "-4,200"),
        ]
    )
    func grouped(number: Int, text: String) { #expect(NumberText.grouped(number) == text) }

    @Test(
        "numbers on an axis are short",
        arguments: [
            (0, "0"), (950, "950"), (1_000, "1k"), (1_500, "1.5k"), (1_999, "1.9k"), (20_000, "20k"),
            (2_500_000, "2.5M"),
            (3_000_000_000, "3G"),
        ]
    )
    func compact(number: Int, text: String) { #expect(NumberText.compact(number) == text) }

    @Test(
        "a share neither 0 nor all never rounds to 0 % or 100 %",
        arguments: [
            (0, 0, "0.0 %"), (0, 10, "0.0 %"), (10, 10, "100.0 %"), (1, 8, "12.5 %"), (160, 4_000, "4.0 %"),
            (1, 1_000_000, "< 0.1 %"),
            (999_999, 1_000_000, "> 99.9 %"), (820, 800, "102.5 %"),
        ]
    )
    func percent(part: Int, whole: Int, text: String) { #expect(NumberText.percent(part, of: whole) == text) }

    @Test(
        "an age has a suitable unit",
        arguments: [
            (0, "just now"), (1, "just now"), (2, "2 s ago"), (119, "119 s ago"), (120, "2 min ago"),
            (7_199, "119 min ago"), (7_200, "2 h ago"),
        ]
    )
    func age(seconds: Int, text: String) { #expect(NumberText.age(.seconds(seconds)) == text) }

    @Test(
        "a window's length is in its largest whole unit",
        arguments: [
            (61, "61 s"), (5_400, "90 min"), (10_800, "3 h"), (90_000, "25 h"), (86_400, "1 day"), (604_800, "7 days"),
        ]
    )
    func duration(seconds: Int, text: String) { #expect(NumberText.duration(seconds) == text) }

    @Test("one is singular")
    func count() {
        #expect(NumberText.count(1, "message") == "1 message")
        #expect(NumberText.count(0, "message") == "0 messages")
        #expect(NumberText.count(1_000, "message") == "1,000 messages")
    }

    @Test("an instant is in UTC, with seconds unless they are zero")
    func instants() {
        let text = TimeText(at("2026-11-21T07:05:09Z"))
        #expect(text.iso8601 == "2026-11-21T07:05:09Z")
        #expect(text.text == "21 November 2026, 07:05:09 UTC")
        #expect(TimeText(at("2026-12-01")).text == "1 December 2026, 00:00 UTC")
    }

    @Test("a period has its month's name or its own")
    func periods() {
        #expect(TimeText.period(billingPeriod("2026-02")) == "February 2026")
        #expect(TimeText.shortPeriod(billingPeriod("2005-09")) == "Sep 05")
        #expect(TimeText.period(billingPeriod("2026-W07")) == "Week 7 of 2026")
        #expect(TimeText.period(billingPeriod("2026-02.2")) == "February 2026 (2)")
        #expect(TimeText.shortPeriod(billingPeriod("2005-09.10")) == "Sep 05 (10)")
        #expect(TimeText.period(billingPeriod("2026-W07.3")) == "Week 7 of 2026 (3)")
        #expect(TimeText.period(billingPeriod("2026-02-09")) == "9 February 2026")
        #expect(TimeText.period(billingPeriod("trial")) == "trial")
        #expect(TimeText.shortDay(CivilDate(year: 2026, month: 5, day: 3)) == "3 May")
    }

    @Test("live figures come from INFO, and their event is JSON")
    func live() {
        let figures = DashboardFixtures.overview.live
        #expect(figures.view.rate == "1,284")
        #expect(figures.view.p99 == "1.84 ms")
        #expect(figures.view.sentence == "1,284 answers a second, 3 requests waiting, the database is up.")
        let event = String(buffer: LiveStream.event("figures", figures.view))
        #expect(event.hasPrefix("event: figures\ndata: {") && event.hasSuffix("}\n\n"))
        #expect(event.contains("\"number\":1284.3,\"p99\":\"1.84 ms\""))
        let idle = LiveFigures(info: ["answers_per_second=0.0", "queue_depth=0", "database=down", "nonsense"])
        #expect((idle.view.rate, idle.view.p99, idle.database) == ("0", "–", .down))
        #expect(LiveFigures(info: ["answers_per_second=99.9", "latency_p99_us=1234567"]).view.rate == "99.9")
        #expect(LiveFigures(info: ["latency_p99_us=1234567"]).view.p99 == "1.23 s")
        #expect(LiveFigures(info: ["latency_p99_us=45678"]).view.p99 == "45 ms")
    }
}
