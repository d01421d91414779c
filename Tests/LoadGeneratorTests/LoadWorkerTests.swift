import Foundation
import NIOCore
import NIOEmbedded
import Testing

@testable import LoadGenerator

@Suite("Load worker on a virtual clock")
struct LoadWorkerTests {
    private func plan(_ pace: LoadPlan.Pace, _ extent: LoadPlan.Extent, connections: Int = 4) -> LoadPlan {
        var plan = LoadPlan(seed: 11)
        plan.pace = pace
        plan.extent = extent
        plan.connections = connections
        plan.warmup = 0
        plan.users = 100
        return plan
    }

    /// Answers at once, except during the third second.
    private func stalls(_ elapsed: Int) -> Bool { !(2_000..<3_000).contains(elapsed) }

    @Test("In an open loop, a stall delays every request that was due during it")
    func openLoop() throws {
        let load = try VirtualLoad(plan(.open(rate: 1_000, .even), .seconds(10)))
        try load.pass(20_000, answers: stalls)
        let report = load.report
        #expect(report.requests == 10_000 && report.allowed == 10_000)
        let latency = try #require(report.latency.value)
        // A tenth of the requests were due during the stall, and waited between 0 and 1 s.
        #expect(latency.p50 <= 1)
        #expect((490...510).contains(try #require(percentile(load, 95))))
        #expect((980...1_002).contains(latency.p999))
        #expect((999...1_002).contains(latency.max))
        #expect(report.problems == [])
    }

    @Test("A closed loop hides the same stall, and the report says so")
    func closedLoop() throws {
        let load = try VirtualLoad(plan(.closed(pipeline: 1), .seconds(10)))
        try load.pass(20_000, answers: stalls)
        let report = load.report
        let latency = try #require(report.latency.value)
        #expect(report.replies > 30_000)
        #expect(latency.p999 <= 1)
        #expect((999...1_002).contains(latency.max))
        #expect(report.table.contains("coordinated omission"))
    }

    private func percentile(_ load: VirtualLoad, _ percent: Double) -> Double? {
        load.results.latencies.percentile(percent).milliseconds
    }

    @Test("An open loop distributes requests over the connections and pipelines them")
    func spread() throws {
        let load = try VirtualLoad(plan(.open(rate: 1_000, .even), .seconds(1), connections: 8))
        try load.pass(1_000, answers: { _ in false })
        #expect(load.unanswered.allSatisfy { $0 == 125 })
    }

    @Test("An open loop drops requests over the maximum of waiting ones, and counts them")
    func dropped() throws {
        var plan = plan(.open(rate: 1_000, .even), .seconds(1))
        plan.waitingMaximum = 300
        let load = try VirtualLoad(plan)
        try load.pass(1_010, answers: { _ in false })
        #expect(load.requestCount == 300)
        try load.pass(1)
        #expect(load.hasFinished)
        #expect(load.report.requests == 300 && load.report.replies == 300 && load.report.dropped == 700)
        #expect(load.report.problems.contains { $0.contains("the load could not be offered") })
    }

    @Test("An open loop that starts late sends all due requests, and records the lag")
    func sendLag() throws {
        let load = try VirtualLoad(plan(.open(rate: 1_000, .even), .requests(101)), late: 50)
        try load.pass(100)
        let report = load.report
        #expect(load.hasFinished && report.requests == 101)
        let lag = try #require(report.sendLag)
        #expect((49...52).contains(lag.max))
        #expect(lag.p50 <= 0.001 && (39...41).contains(lag.p90))
        // The latency includes the delay, because it counts from when the request was due.
        #expect(try #require(report.latency.value).max >= 49)
    }

    @Test("A closed loop keeps exactly the configured number of requests in flight", arguments: [1, 7])
    func pipeline(_ inFlight: Int) throws {
        let load = try VirtualLoad(plan(.closed(pipeline: inFlight), .seconds(1)))
        try load.pass(500)
        #expect(load.mostInFlight == inFlight)
        #expect(load.requestCount >= 499 * 4 * inFlight)
    }

    @Test(
        "The configured number of requests is sent and counted",
        arguments: [LoadPlan.Pace.closed(pipeline: 3), .open(rate: 5_000, .poisson)]
    )
    func quota(_ pace: LoadPlan.Pace) throws {
        let load = try VirtualLoad(plan(pace, .requests(1_001)))
        try load.pass(5_000)
        #expect(load.hasFinished)
        #expect(load.requestCount == 1_001)
        #expect(load.report.requests == 1_001 && load.report.replies == 1_001)
    }

    @Test(
        "Requests of the warm-up are not recorded",
        arguments: [LoadPlan.Pace.closed(pipeline: 1), .open(rate: 1_000, .even)]
    )
    func warmup(_ pace: LoadPlan.Pace) throws {
        var plan = plan(pace, .seconds(1))
        plan.warmup = 2
        let load = try VirtualLoad(plan)
        // Slow during the warm-up, which no latency includes.
        try load.pass(10_000, answers: { $0 > 1_900 || $0 % 500 == 0 })
        let report = load.report
        #expect(report.warmupReplies > 0)
        #expect(report.warmupReplies + report.replies == load.requestCount)
        #expect(report.warmupAllowed + report.allowed == load.requestCount)
        #expect(try #require(report.latency.value).max <= 1.001)
        #expect(report.seconds >= 1 && report.seconds < 1.01)
    }

    @Test("The wait for missing replies is limited")
    func unanswered() throws {
        let load = try VirtualLoad(plan(.closed(pipeline: 5), .seconds(1)))
        try load.pass(5_999, answers: { $0 < 500 })
        #expect(!load.hasFinished)
        try load.pass(1, answers: { _ in false })
        #expect(load.hasFinished)
        #expect(load.report.unanswered == 20)
        #expect(load.report.problems.count == 1)
        // The latencies include them with their wait so far.
        #expect((5_495...5_505).contains(try #require(load.report.latency.value).max))
    }

    @Test("Stopping a run waits for its replies, and stopping again ends the wait")
    func stopping() throws {
        let load = try VirtualLoad(plan(.closed(pipeline: 1), .seconds(100)))
        try load.pass(1_500)
        load.worker.stop()
        let before = load.requestCount
        try load.pass(100, answers: { _ in false })
        #expect(!load.hasFinished)
        load.worker.stop()
        #expect(load.hasFinished)
        #expect(load.requestCount <= before + 4)
        #expect(load.report.unanswered == 4)
        #expect((1.49...1.51).contains(load.report.seconds))
    }

    @Test(
        "At the end each connection commits what it has reserved",
        arguments: [
            (LoadPlan.Pace.closed(pipeline: 1), LoadPlan.Extent.requests(101)),
            (.closed(pipeline: 7), .requests(1_001)), (.closed(pipeline: 16), .seconds(1)),
            (.open(rate: 1_000, .even), .requests(101)), (.open(rate: 500, .poisson), .seconds(1)),
        ]
    )
    func reservations(_ pace: LoadPlan.Pace, _ extent: LoadPlan.Extent) throws {
        var plan = plan(pace, extent)
        plan.request = .verb(.reserve, messages: 1, keyShare: 0)
        let load = try VirtualLoad(plan)
        try load.pass(3_000)
        #expect(load.hasFinished)
        for text in load.sent {
            let reserved = text.components(separatedBy: "RESERVE").count - 1
            #expect(reserved > 0 && text.components(separatedBy: "COMMIT").count - 1 == reserved)
        }
        #expect(load.report.requests == load.requestCount && load.report.replies == load.requestCount)
        if case .closed(let pipeline) = pace { #expect(load.mostInFlight == pipeline) }
        if case .requests(let count) = extent { #expect(load.requestCount >= count) }
    }

    @Test("A broken connection loses its requests, and the others continue")
    func broken() throws {
        let load = try VirtualLoad(plan(.closed(pipeline: 2), .seconds(1)))
        try load.pass(500)
        try load.pass(1, answers: { _ in false })
        try load.channels[0].close().wait()
        try load.pass(2_000)
        let report = load.report
        #expect(load.hasFinished)
        #expect(report.brokenConnections == 1 && report.unanswered == 2)
        #expect(report.problems.contains { $0.contains("1 connections broke (the first: the server closed it)") })
        #expect(report.replies > 3 * 2 * 990)
    }

    @Test(
        "A run without connections left ends at once",
        arguments: [LoadPlan.Pace.closed(pipeline: 1), .open(rate: 100, .even)]
    )
    func allBroken(_ pace: LoadPlan.Pace) throws {
        let load = try VirtualLoad(plan(pace, .seconds(100)))
        try load.pass(500)
        for channel in load.channels { try channel.close().wait() }
        try load.pass(1)
        #expect(load.hasFinished)
        #expect(load.report.brokenConnections == 4)
    }

    @Test(
        "Another protocol, or a reply without a request, breaks the connection",
        arguments: ["HTTP/1.1 400\r\n", "+OK\r\n+OK\r\n", "+OK\r\n-OVERLOADED too many\r\n"]
    )
    func nonsense(_ reply: String) throws {
        let load = try VirtualLoad(plan(.closed(pipeline: 1), .seconds(100), connections: 1))
        try load.pass(10)
        try load.pass(10, reply: reply)
        #expect(load.hasFinished)
        #expect(load.report.brokenConnections == 1)
        #expect(load.report.problems.first?.contains("the server closed it") == false)
        #expect(load.report.problems.first?.contains("-OVERLOADED") == reply.contains("-OVERLOADED"))
    }

    @Test("An idle connection sends nothing, and its close is counted")
    func idle() throws {
        let load = try VirtualLoad(plan(.closed(pipeline: 1), .seconds(1)))
        let greeting = try load.connect(isIdle: true)
        try greeting.wait()
        try load.pass(500)
        #expect(load.unanswered.count == 5)
        try load.pass(1, answers: { _ in false })
        #expect(load.unanswered == [1, 1, 1, 1, 0])
        try load.channels[4].close().wait()
        try load.pass(1_000)
        #expect(load.report.idleConnectionsClosed == 1 && load.report.brokenConnections == 0)
        #expect(load.report.problems.count == 1)
    }

    @Test(
        "The error of a refused connection quotes the answer",
        arguments: ["-OVERLOADED too many connections\r\n", "HTTP\n"]
    )
    func refused(_ greeting: String) throws {
        let load = try VirtualLoad(plan(.closed(pipeline: 1), .seconds(1)))
        let greeted = try load.connect(greeting: greeting)
        let error = #expect(throws: LoadError.self) { try greeted.wait() }
        #expect(error?.description.contains(greeting.prefix(4)) == true)
        #expect(!load.channels[4].isActive)
    }
}
