import Foundation
import Testing

@testable import OperatorConsole

/// The value at a path of a JSON object.
func json(_ text: String, _ path: String...) throws -> String {
    var value: Any? = try JSONSerialization.jsonObject(with: Data(text.utf8), options: [.fragmentsAllowed])
    for name in path {
        if let index = Int(name) {
            value = (value as? [Any])?[index]
        } else {
            value = (value as? [String: Any])?[name]
        }
    }
    return value.map { "\($0)" } ?? "nothing"
}

@Suite("The status of a service")
struct ServiceTests {
    static let lines = [
        "+version=0.1.0", "+uptime_s=93784", "+connections=12", "+connections_total=3456", "+connections_refused=0",
        "+database=up", "+lanes=2", "+lanes_connected=2", "+queue_depth=0", "+batches=9", "+requests=99",
        "+reconnects=1", "+database_version=15.14", "+schema_version=9", "+replication_lag_s=0.250",
        "+answers_per_second=1234.5", "+latency_p50_us=812", "+latency_p99_us=2431", "+answers_allowed=1200000",
        "+answers_blocked=30", "+answers_held=4", "+answers_ok=5", "+tier_silent=1000000", "+tier_gentle=200000",
        "+tier_prominent=9", "+tier_blocked=30", "+errors=3", "+verb_consume=1200030", "+verb_info=2",
        "+errors_badarg=3", "+of_the_future=yes",
    ]

    @Test("status has one line for each subject")
    func status() throws {
        let report = StatusReport(try ServiceInfo(lines: ServiceTests.lines), target: "127.0.0.1:6747")
        #expect(
            report.text == """
                service      0.1.0 at 127.0.0.1:6747, up 1 d 2 h
                database     up, PostgreSQL 15.14, schema 9, the slowest standby 0.250 s behind
                lanes        2 of 2 connected, 0 requests waiting, 1 reconnects
                connections  12 now, 3,456 in all, 0 refused
                answers      1234.5 a second, p50 0.81 ms, p99 2.43 ms
                             1,200,000 allowed, 30 blocked, 4 held, 5 ok, 3 errors
                             by the user's tier: 1,000,000 silent, 200,000 gentle, 9 prominent, 30 blocked
                requests     CONSUME 1,200,030, INFO 2
                errors       -BADARG 3
                """
        )
    }

    @Test("status fits the terminal if no word is longer", arguments: [40, 60, 80, 200])
    func width(_ width: Int) throws {
        let report = StatusReport(try ServiceInfo(lines: ServiceTests.lines), target: "127.0.0.1:6747")
        let lines = report.text(width: width).split(separator: "\n")
        #expect(lines.allSatisfy { $0.count <= width })
        // Each value begins in the same column.
        #expect(lines.allSatisfy { Array($0).count > 13 && Array($0)[12] == " " && Array($0)[13] != " " })
        let words = { (text: String) in text.split(whereSeparator: \.isWhitespace) }
        #expect(words(report.text(width: width)) == words(report.text))
    }

    @Test("absent values are left out")
    func absent() throws {
        let few = ["+version=0.1.0", "+database=down", "+answers_per_second=0.0"]
        let text = StatusReport(try ServiceInfo(lines: few), target: "here:1").text
        #expect(text.contains("\ndatabase     down\n"))
        #expect(text.contains("\nanswers      0.0 a second\n"))
        #expect(!text.contains("requests     "))
    }

    @Test("JSON has INFO's names, also unknown ones, numbers as numbers and versions as text")
    func jsonNames() throws {
        let text = try ServiceInfo(lines: ServiceTests.lines).jsonLine()
        #expect(try json(text, "uptime_s") == "93784")
        #expect(text.contains(#""database_version":"15.14""#))
        #expect(text.contains(#""replication_lag_s":0.25"#))
        #expect(text.contains(#""of_the_future":"yes""#))
        #expect(!text.contains("\n"))
    }

    @Test("an answer without a version is refused", arguments: [[], ["HTTP/1.1 400 Bad Request"], ["+PONG"]])
    func strangers(_ lines: [String]) { #expect(throws: UnexpectedReply.self) { try ServiceInfo(lines: lines) } }

    @Test("the database is reached unless it is reported down", arguments: ["up", "degraded", "down"])
    func reached(_ word: String) throws {
        let info = try ServiceInfo(lines: ["+version=1", "+database=\(word)"])
        #expect(info.isDatabaseReached == (word != "down"))
    }

    @Test("a duration has its two largest units")
    func durations() {
        #expect(
            [0, 59, 60, 3_599, 3_600, 86_399, 86_400, 1_000_000].map(duration) == [
                "0 s", "59 s", "1 min 0 s", "59 min 59 s", "1 h 0 min", "23 h 59 min", "1 d 0 h", "11 d 13 h",
            ]
        )
    }
}
