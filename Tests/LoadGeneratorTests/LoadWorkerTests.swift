import NIOCore
import NIOEmbedded
import Testing

@testable import LoadGenerator

@Suite("A worker on a clock of its own")
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

    /// Answers at once, but not for the third second.
    private func stalls(_ elapsed: Int) -> Bool { !(2_000..<3_000).contains(elapsed) }

    @Test("an open loop charges a stall to every request that was due in it")
    func openLoop() throws {
        let load = try VirtualLoad(plan(.open(rate: 1_000, .even), .seconds(10)))
        try load.pass(20_000, answers: stalls)
        let report = load.report
        #expect(report.requests == 10_000 && report.allowed == 10_000)
        let latency = try #require(report.latency.value)
        // A tenth of all were due in the stall, and waited for between 0 and 1 s.
        #expect(latency.p50 <= 1)
        #expect((490...510).contains(try #require(percentile(load, 95))))
        #expect((980...1_002).contains(latency.p999))
        #expect((999...1_002).contains(latency.max))
        #expect(report.problems == [])
    }

    @Test("a closed loop hides the same stall, which is why the report says so")
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
        load.gathering.latencies.percentile(percent).milliseconds
    }

    @Test("an open loop spreads its requests over the connections, and pipelines behind those that wait")
    func spread() throws {
        let load = try VirtualLoad(plan(.open(rate: 1_000, .even), .seconds(1), connections: 8))
        try load.pass(1_000, answers: { _ in false })
        #expect(load.unanswered.allSatisfy { $0 == 125 })
    }

    @Test("an open loop does not send more than may wait, and tells how many it dropped")
    func dropped() throws {
        var plan = plan(.open(rate: 1_000, .even), .seconds(1))
        plan.waitingMaximum = 300
        let load = try VirtualLoad(plan)
        try load.pass(1_010, answers: { _ in false })
        #expect(load.asked == 300)
        try load.pass(1)
        #expect(load.hasFinished)
        #expect(load.report.requests == 300 && load.report.replies == 300 && load.report.dropped == 700)
        #expect(load.report.problems.contains { $0.contains("the load could not be offered") })
    }

    @Test("an open loop that is late sends all that is due, and tells how late it was")
    func sendLag() throws {
        let load = try VirtualLoad(plan(.open(rate: 1_000, .even), .requests(101)), late: 50)
        try load.pass(100)
        let report = load.report
        #expect(load.hasFinished && report.requests == 101)
        let lag = try #require(report.sendLag)
        #expect((49...52).contains(lag.max))
        #expect(lag.p50 <= 0.001 && (39...41).contains(lag.p90))
        // The delay is in the latency too: it counts from when the request was due.
        #expect(try #require(report.latency.value).max >= 49)
    }

    @Test("a closed loop keeps as many requests in flight as it may, and not one more", arguments: [1, 7])
    func pipeline(_ inFlight: Int) throws {
        let load = try VirtualLoad(plan(.closed(pipeline: inFlight), .seconds(1)))
        try load.pass(500)
        #expect(load.mostInFlight == inFlight)
        #expect(load.asked >= 499 * 4 * inFlight)
    }

    @Test(
        "as many requests as were wanted are sent and counted",
        arguments: [LoadPlan.Pace.closed(pipeline: 3), .open(rate: 5_000, .poisson)]
    )
    func quota(_ pace: LoadPlan.Pace) throws {
        let load = try VirtualLoad(plan(pace, .requests(1_001)))
        try load.pass(5_000)
        #expect(load.hasFinished)
        #expect(load.asked == 1_001)
        #expect(load.report.requests == 1_001 && load.report.replies == 1_001)
    }

    @Test(
        "what is sent in the warm-up is not recorded",
        arguments: [LoadPlan.Pace.closed(pipeline: 1), .open(rate: 1_000, .even)]
    )
    func warmup(_ pace: LoadPlan.Pace) throws {
        var plan = plan(pace, .seconds(1))
        plan.warmup = 2
        let load = try VirtualLoad(plan)
        // Slow at first: that is in no latency.
        try load.pass(10_000, answers: { $0 > 1_900 || $0 % 500 == 0 })
        let report = load.report
        #expect(report.warmupReplies > 0)
        #expect(report.warmupReplies + report.replies == load.asked)
        #expect(report.warmupAllowed + report.allowed == load.asked)
        #expect(try #require(report.latency.value).max <= 1.001)
        #expect(report.seconds >= 1 && report.seconds < 1.01)
    }

    @Test("replies that do not come are waited for so long and no longer")
    func unanswered() throws {
        let load = try VirtualLoad(plan(.closed(pipeline: 5), .seconds(1)))
        try load.pass(5_999, answers: { $0 < 500 })
        #expect(!load.hasFinished)
        try load.pass(1, answers: { _ in false })
        #expect(load.hasFinished)
        #expect(load.report.unanswered == 20)
        #expect(load.report.problems.count == 1)
        // They are in the latencies with what they waited until then.
        #expect((5_495...5_505).contains(try #require(load.report.latency.value).max))
    }

    @Test("a run that is stopped waits for its replies, and stopped again does not")
    func stopping() throws {
        let load = try VirtualLoad(plan(.closed(pipeline: 1), .seconds(100)))
        try load.pass(1_500)
        load.worker.stop()
        let asked = load.asked
        try load.pass(100, answers: { _ in false })
        #expect(!load.hasFinished)
        load.worker.stop()
        #expect(load.hasFinished)
        #expect(load.asked <= asked + 4)
        #expect(load.report.unanswered == 4)
        #expect((1.49...1.51).contains(load.report.seconds))
    }

    @Test("a connection that breaks takes its requests with it, and the others go on")
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
        "a run without connections left ends at once",
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
        "a server that speaks something else, or unasked, breaks the connection",
        arguments: ["HTTP/1.1 400\r\n", "+OK\r\n+OK\r\n"]
    )
    func nonsense(_ reply: String) throws {
        let load = try VirtualLoad(plan(.closed(pipeline: 1), .seconds(100), connections: 1))
        try load.pass(10)
        try load.pass(10, reply: reply)
        #expect(load.hasFinished)
        #expect(load.report.brokenConnections == 1)
        #expect(load.report.problems.first?.contains("the server closed it") == false)
    }

    @Test("an idle connection says nothing, and is told of when it is closed")
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
        "a connection that the server refuses says with what",
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
