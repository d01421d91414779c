import NIOCore
import NIOEmbedded

@testable import LoadGenerator

/// A worker and its connections on a clock that the test moves, with a server whose answers the test triggers.
final class VirtualLoad {
    let loop = EmbeddedEventLoop()
    let worker: LoadWorker
    private(set) var channels: [EmbeddedChannel] = []
    /// Requests without an answer, by connection.
    private(set) var unanswered: [Int] = []
    private(set) var mostInFlight = 0
    private(set) var requestCount = 0
    /// All requests as they were sent, by connection.
    private(set) var sent: [String] = []
    private(set) var results = ResultAggregator(workers: 1)
    private(set) var hasFinished = false
    private let plan: LoadPlan

    /// - Parameter late: milliseconds by which the worker starts late.
    init(_ plan: LoadPlan, late: Int = 0) throws {
        self.plan = plan
        loop.advanceTime(by: .milliseconds(Int64(late)))
        var random = SeededRandom(seed: plan.seed)
        var handle: (WorkerEvent) -> Void = { _ in }
        worker = LoadWorker(
            eventLoop: loop,
            plan: plan,
            number: 0,
            keyPrefix: "run-",
            sampler: UserSampler(plan.distribution, users: plan.users, random: &random),
            random: random,
            emit: { handle($0) }
        )
        handle = { [unowned self] event in
            switch event {
            case .second(let number, let second): _ = results.add(number, second)
            case .finished(let result): hasFinished = results.add(result)
            }
        }
        for _ in 0..<plan.connections { _ = try connect() }
        worker.start(LoadWorker.Times(start: 0, plan: plan))
    }

    /// - Returns: the result of the handshake.
    func connect(isIdle: Bool = false, greeting: String = "+PONG\r\n") throws -> EventLoopFuture<Void> {
        let promise = loop.makePromise(of: Void.self)
        let channel = EmbeddedChannel(
            handler: LoadConnection(worker: worker, isIdle: isIdle, handshake: promise),
            loop: loop
        )
        try channel.connect(to: SocketAddress(unixDomainSocketPath: "/virtual")).wait()
        let handshake = try channel.readOutbound(as: ByteBuffer.self).map(String.init(buffer:))
        precondition(handshake == "*1\r\n$4\r\nPING\r\n")
        try channel.writeInbound(ByteBuffer(string: greeting))
        channels.append(channel)
        unanswered.append(0)
        sent.append("")
        return promise.futureResult
    }

    var report: LoadReport { LoadReport(plan, results) }

    /// Milliseconds since the start.
    var elapsed: Int { Int(loop.now.uptimeNanoseconds / 1_000_000) }

    /// Advances the clock by milliseconds, or until the run ends.
    ///
    /// - Parameter answers: called each millisecond: whether the server answers everything now.
    func pass(_ milliseconds: Int, reply: String = "+ALLOWED user=u\r\n", answers: (Int) -> Bool = { _ in true }) throws
    {
        for _ in 0..<milliseconds where !hasFinished {
            loop.advanceTime(by: .milliseconds(1))
            try receive()
            if answers(elapsed) { try answer(reply) }
        }
    }

    func receive() throws {
        for (index, channel) in channels.enumerated() {
            while let bytes = try channel.readOutbound(as: ByteBuffer.self) {
                // Only the start of each request has an asterisk.
                let count = bytes.readableBytesView.count { $0 == UInt8(ascii: "*") }
                unanswered[index] += count
                requestCount += count
                sent[index] += String(buffer: bytes)
            }
            mostInFlight = max(mostInFlight, unanswered[index])
        }
    }

    func answer(_ reply: String = "+ALLOWED user=u\r\n") throws {
        for (index, channel) in channels.enumerated() where unanswered[index] > 0 {
            let count = unanswered[index]
            unanswered[index] = 0
            try channel.writeInbound(ByteBuffer(string: String(repeating: reply, count: count)))
        }
    }
}
