import Testing

@testable import OperatorConsole

@Suite("A sample of a running service")
struct TopTests {
    private func info(_ changes: [String: String] = [:]) throws -> ServiceInfo {
        try ServiceInfo(
            lines: ServiceTests.lines.map { line in
                let name = line.dropFirst().prefix { $0 != "=" }
                return changes[String(name)].map { "+\(name)=\($0)" } ?? line
            }
        )
    }

    private func busiest() throws -> [Record] {
        try [Record](
            ["+PERIOD user=7f1c0a52-3a51-4a7e-9d55-0b6a3f1f7c11 period=2026-03 used=790 limit=800 tier=prominent"],
            status: "PERIOD"
        )
    }

    @Test("the first sample has the service's own rate, and counts since its start")
    func first() throws {
        let sample = TopSample(try info(), after: nil, busiest: nil, target: "127.0.0.1:6747")
        #expect(try sample.jsonLine().contains(#""busiest":null,"#))
        #expect(try sample.jsonLine().hasSuffix(#""rates":null}"#))
        #expect(
            sample.lines(width: 200, height: 50) == [
                "headroom 0.1.0 at 127.0.0.1:6747, up 1 d 2 h; database up, 2 of 2 lanes, 0 waiting; 12 connections",
                "",
                "1,235 answers a second, p50 0.81 ms, p99 2.43 ms",
                "",
                "tier       a second  since start    outcome  a second  since start",
                "silent            -    1,000,000    allowed         -    1,200,000",
                "gentle            -      200,000    blocked         -           30",
                "prominent         -            9    held            -            4",
                "blocked           -           30    ok              -            5",
                "                                    errors          -            3",
                "",
                "searching for the busiest users",
            ]
        )
    }

    @Test("a later sample has rates by tier and outcome")
    func later() throws {
        let now = try info([
            "uptime_s": "93786", "answers_allowed": "1200500", "answers_blocked": "31", "tier_silent": "1000497",
            "tier_blocked": "34", "errors": "6",
        ])
        let sample = TopSample(now, after: (try info(), 2), busiest: try busiest(), target: "here:1")
        #expect(sample.perSecond == 250.5)
        let lines = sample.lines(width: 200, height: 50)
        #expect(lines[2].hasPrefix("251 answers a second"))
        #expect(lines[5] == "silent          249    1,000,497    allowed       250    1,200,500")
        #expect(lines[9] == "                                    errors        1.5            6")
        #expect(lines.last == "7f1c0a52-3a51-4a7e-9d55-0b6a3f1f7c11  2026-03   790    800  prominent")
        let text = try sample.jsonLine()
        #expect(try json(text, "per_second") == "250.5")
        #expect(try json(text, "rates", "tier_blocked") == "2")
        #expect(try json(text, "busiest", "0", "used") == "790")
        #expect(try json(text, "info", "errors") == "6")
    }

    @Test("a restart of the service causes no negative rate")
    func restarted() throws {
        let now = try info(["uptime_s": "1", "answers_allowed": "3", "answers_per_second": "0.6"])
        let sample = TopSample(now, after: (try info(), 1), busiest: nil, target: "here:1")
        #expect(sample.rates == nil)
        #expect(sample.perSecond == 0.6)
    }

    @Test("on a narrow terminal lines wrap and tables stand one below the other")
    func narrow() throws {
        let sample = TopSample(try info(), after: nil, busiest: try busiest(), target: "127.0.0.1:6747")
        #expect(
            sample.lines(width: 40, height: 50) == [
                "headroom 0.1.0 at 127.0.0.1:6747, up 1 d",
                "2 h;",
                "database up, 2 of 2 lanes, 0 waiting;",
                "12 connections",
                "",
                "1,235 answers a second, p50 0.81 ms, p99",
                "2.43 ms",
                "",
                "tier       a second  since start",
                "silent            -    1,000,000",
                "gentle            -      200,000",
                "prominent         -            9",
                "blocked           -           30",
                "outcome    a second  since start",
                "allowed           -    1,200,000",
                "blocked           -           30",
                "held              -            4",
                "ok                -            5",
                "errors            -            3",
                "",
                "busiest user  used  limit  tier",
                "7f1c0a52…      790    800  prominent",
            ]
        )
        #expect(
            sample.lines(width: 66, height: 50).contains { $0.hasPrefix("7f1c0a52-3a51-4a7e-9d55-0b6a3f1f7c11   790") }
        )
    }

    @Test("problems are highlighted, and the last line says how to quit")
    func emphasis() throws {
        let sample = TopSample(try info(["database": "down"]), after: nil, busiest: try busiest(), target: "here:1")
        let lines = sample.screen(width: 200, height: 50, problem: "cannot be reached", footer: "q quits")
        #expect(lines.first?.emphasis == .alarm)
        #expect(lines.contains(ScreenLine(text: "cannot be reached", emphasis: .alarm)))
        #expect(lines.contains { $0.text.hasSuffix("prominent") && $0.emphasis == .warning })
        #expect(lines.last == ScreenLine(text: "q quits", emphasis: .aside))
        let few = sample.screen(width: 200, height: 6, footer: "q quits")
        #expect(few.count == 6 && few.last?.text == "q quits")
    }

    @Test("no line is wider than the terminal, and no more lines than fit", arguments: [(1, 1), (20, 5), (80, 24)])
    func cut(_ width: Int, _ height: Int) throws {
        let sample = TopSample(try info(), after: nil, busiest: try busiest(), target: "here:1")
        let lines = sample.lines(width: width, height: height, problem: "the service cannot be reached")
        #expect(lines.count <= height)
        #expect(lines.allSatisfy { $0.count <= width })
        if height > 20 { #expect(lines.contains("the service cannot be reached")) }
    }

    @Test("a line has as many columns as its header")
    func line() throws {
        let later = TopSample(try info(), after: (try info(), 1), busiest: nil, target: "here:1")
        let line = later.line(at: "12:00:00")
        #expect(
            line.split(separator: " ").map(String.init) == [
                "12:00:00", "0.0", "0.81", "2.43", "0.0", "0.0", "0.0", "0.0", "0.0", "0",
            ]
        )
        #expect(line.count == TopSample.lineHeader.count)
    }
}
