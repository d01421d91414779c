import Foundation
import Testing

@testable import LoadGenerator

@Suite("Load report")
struct ReportTests {
    private static let fieldNames: Set<String> = [
        "target", "mode", "connections", "idle_connections", "threads", "pipeline", "rate_offered", "arrivals", "users",
        "distribution", "verb", "messages", "key_share", "command", "seed", "seconds", "requests", "replies", "allowed",
        "blocked", "other", "errors", "dropped", "unanswered", "broken_connections", "idle_connections_closed",
        "warmup_replies", "warmup_allowed", "per_second", "clamped", "latency_ms", "series", "problems",
    ]

    private func second(_ replies: [(ReplyScanner.Reply, UInt64)]) -> Second {
        var second = Second()
        for (reply, nanoseconds) in replies {
            second.tally.count(reply)
            second.latencies.record(nanoseconds)
        }
        return second
    }

    private func result(requests: Int, seconds: Double) -> WorkerResult {
        var result = WorkerResult()
        result.requests = requests
        result.seconds = seconds
        return result
    }

    private func object(_ report: LoadReport) throws -> [String: Any] {
        let json = try report.json()
        #expect(!json.contains("\n"))
        return try #require(try JSONSerialization.jsonObject(with: Data(json.utf8)) as? [String: Any])
    }

    @Test("A closed-loop report has every field, null where it does not apply")
    func closed() throws {
        var results = ResultAggregator(workers: 1)
        _ = results.add(
            0,
            second([
                (.allowed, 1_000_000), (.allowed, 3_000_000), (.blocked, 2_000_000), (.other, 2_000_000),
                (.error(.init("BADARG")), 2_000_000), (.error(.init("BADARG")), 90_000_000_000),
            ])
        )
        _ = results.add(result(requests: 8, seconds: 1.5))
        let object = try object(LoadReport(LoadPlan(seed: .max), results))
        #expect(Set(object.keys) == Self.fieldNames)
        for name in ["rate_offered", "arrivals", "command"] { #expect(object[name] is NSNull, "\(name)") }
        #expect(object["target"] as? String == "127.0.0.1:6747")
        #expect(object["mode"] as? String == "closed")
        #expect(object["pipeline"] as? Int == 1)
        #expect(object["verb"] as? String == "consume")
        #expect(object["seed"] as? UInt64 == .max)
        #expect(object["errors"] as? [String: Int] == ["BADARG": 2])
        let counts = ["requests", "replies", "allowed", "blocked", "other", "unanswered", "clamped"].map {
            object[$0] as? Int
        }
        #expect(counts == [8, 6, 2, 1, 1, 2, 1])
        #expect(object["per_second"] as? Double == 4)
        let latency = try #require(object["latency_ms"] as? [String: Double])
        #expect(Set(latency.keys) == ["min", "mean", "p50", "p90", "p99", "p99_9", "p99_99", "max"])
        // A latency of over 60 s counts as 60 s, and in `clamped`.
        #expect(latency["max"] == 60_000)
        #expect(abs(try #require(latency["p50"]) - 2) < 0.002)
        let series = try #require(object["series"] as? [[String: Any]])
        #expect(series.map { Set($0.keys) } == [["second", "replies", "p50_ms", "p99_ms", "errors"]])
        #expect(series[0]["errors"] as? Int == 2)
    }

    @Test("docs/benchmarking.md lists every field of the report")
    func documentation() throws {
        let root = URL(filePath: #filePath)
            .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        let page = try String(contentsOf: root.appending(path: "docs/benchmarking.md"), encoding: .utf8)
        let figures = ["p50", "p99_9", "p99_99", "p50_ms", "p99_ms", "second", "send_lag_ms"]
        for name in Self.fieldNames.union(figures) { #expect(page.contains("`\(name)`"), "\(name)") }
    }

    @Test("An open-loop report adds the offered rate and the send lag")
    func open() throws {
        var plan = LoadPlan(seed: 1)
        plan.host = "::1"
        plan.pace = .open(rate: 250, .poisson)
        plan.request = .command(["GET", "{user}"])
        var results = ResultAggregator(workers: 1)
        var result = result(requests: 1, seconds: 1)
        result.sendLag.record(2_000_000)
        result.dropped = 3
        _ = results.add(0, second([(.other, 1_000)]))
        _ = results.add(result)
        let object = try object(LoadReport(plan, results))
        #expect(Set(object.keys) == Self.fieldNames.union(["send_lag_ms"]))
        for name in ["pipeline", "verb", "messages", "key_share"] { #expect(object[name] is NSNull, "\(name)") }
        #expect(object["target"] as? String == "[::1]:6747")
        #expect(object["rate_offered"] as? Double == 250)
        #expect(object["arrivals"] as? String == "poisson")
        #expect(object["command"] as? String == "GET {user}")
        #expect(object["dropped"] as? Int == 3)
        #expect((object["problems"] as? [String])?.count == 1)
        #expect(abs(try #require((object["send_lag_ms"] as? [String: Double])?["max"]) - 2) < 0.002)
    }

    @Test("Without replies the latencies are null")
    func nothing() throws {
        var results = ResultAggregator(workers: 1)
        _ = results.add(0, Second())
        _ = results.add(1, Second())
        _ = results.add(result(requests: 0, seconds: 2))
        let object = try object(LoadReport(LoadPlan(seed: 1), results))
        #expect(object["latency_ms"] is NSNull)
        let series = try #require(object["series"] as? [[String: Any]])
        #expect(series.count == 2 && series.allSatisfy { $0["p50_ms"] is NSNull })
    }

    @Test("Results of the same second are summed over the workers, even if one of them ended early")
    func workers() {
        var results = ResultAggregator(workers: 2)
        #expect(results.add(0, second([(.allowed, 1_000_000)])) == [])
        #expect(results.add(0, second([(.blocked, 3_000_000)])).map(\.replies) == [2])
        #expect(results.add(1, second([(.allowed, 1_000_000)])) == [])
        let hasFinished = results.add(result(requests: 2, seconds: 1.2))
        #expect(!hasFinished)
        _ = results.add(2, Second())
        _ = results.add(result(requests: 1, seconds: 0.9))
        let report = LoadReport(LoadPlan(seed: 1), results)
        #expect(report.series.map(\.second) == [1, 2])
        #expect(report.series.map(\.replies) == [2, 1])
        #expect(report.replies == 3 && report.requests == 3 && report.seconds == 1.2)
    }

    @Test("At most 64 error codes are counted separately")
    func codes() {
        var tally = Tally()
        for number in 0..<1_000 { tally.count(.error(.init("CODE\(number)"))) }
        #expect(tally.errorsByCode.count == 65)
        // The other 936 codes share one entry.
        #expect(tally.errorsByCode["FURTHER"] == 936)
        #expect(tally.errorCount == 1_000)
    }

    @Test("The text table shows the values of the JSON report")
    func table() {
        var results = ResultAggregator(workers: 1)
        _ = results.add(0, second([(.allowed, 1_234_000), (.error(.init("UNAVAILABLE")), 1_234_000)]))
        _ = results.add(result(requests: 3, seconds: 1))
        var plan = LoadPlan(seed: 42)
        plan.idleConnections = 9
        let table = LoadReport(plan, results).table
        for text in ["64 connections", "9 idle", "seed 42", "-UNAVAILABLE", "unanswered", "1.234", "p99.99"] {
            #expect(table.contains(text), "\(text)")
        }
    }
}
