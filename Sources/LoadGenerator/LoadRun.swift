import NIOCore
import NIOPosix
import Synchronization
import TransportSecurity

/// One run: opens the connections, sends requests, and combines the results.
public final class LoadRun: Sendable {
    private struct Control {
        var isStopped = false
        var workers: [NIOLoopBound<LoadWorker>] = []
    }

    private let plan: LoadPlan
    private let control = Mutex(Control())

    /// Connections opened at a time. More would overflow the queue of a listening socket, and each overflow costs a
    /// second.
    private static let openingMaximum = 64

    public init(_ plan: LoadPlan) {
        self.plan = plan
    }

    /// Stops sending and waits for the replies; the second call ends the wait. May be called on any thread.
    public func stop() {
        let workers = control.withLock { control in
            control.isStopped = true
            return control.workers
        }
        for worker in workers {
            worker.eventLoop.execute { worker.value.stop() }
        }
    }

    /// - Parameter progress: called once when the connections are open, then each second.
    /// - Throws: `LoadError` when the target does not accept the connections.
    public func run(progress: (LoadProgress) -> Void) async throws -> LoadReport {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: plan.threads)
        do {
            let report = try await run(on: group, progress: progress)
            try await group.shutdownGracefully()
            return report
        } catch {
            try? await group.shutdownGracefully()
            throw error
        }
    }

    private func run(on group: MultiThreadedEventLoopGroup, progress: (LoadProgress) -> Void) async throws -> LoadReport
    {
        let (events, emitter) = AsyncStream.makeStream(of: WorkerEvent.self)
        let workers = try await makeWorkers(group.makeIterator().map(\.self), emitter)
        try await connect(workers)
        progress(.connected(connections: plan.connections, idle: plan.idleConnections))
        // All workers start at the same time, a little later, when each has it.
        let times = LoadWorker.Times(start: NIODeadline.now().uptimeNanoseconds + 10_000_000, plan: plan)
        for worker in workers {
            worker.eventLoop.execute { worker.value.start(times) }
        }
        let isStopped = control.withLock { control in
            control.workers = workers
            return control.isStopped
        }
        if isStopped { stop() }
        var results = ResultAggregator(workers: workers.count)
        for await event in events {
            switch event {
            case .second(let number, let second):
                for line in results.add(number, second) { progress(.second(line)) }
            case .finished(let result):
                if results.add(result) { emitter.finish() }
            }
        }
        return LoadReport(plan, results)
    }

    private func makeWorkers(
        _ loops: [any EventLoop],
        _ emitter: AsyncStream<WorkerEvent>.Continuation
    ) async throws -> [NIOLoopBound<LoadWorker>] {
        var random = SeededRandom(seed: plan.seed)
        let sampler = UserSampler(plan.distribution, users: plan.users, random: &random)
        // The prefix does not come from the seed: a repeated run would have the keys of the first one, and count
        // nothing.
        let keyPrefix = String(UInt64.random(in: 1 << 60 ... .max), radix: 16)
        var workers: [NIOLoopBound<LoadWorker>] = []
        for (number, loop) in loops.enumerated() {
            let random = random.split()
            let plan = plan
            workers.append(
                try await loop.submit {
                    NIOLoopBound(
                        LoadWorker(
                            eventLoop: loop,
                            plan: plan,
                            number: number,
                            keyPrefix: keyPrefix,
                            sampler: sampler,
                            random: random,
                            emit: { emitter.yield($0) }
                        ),
                        eventLoop: loop
                    )
                }.get()
            )
        }
        return workers
    }

    // MARK: Connecting

    private func connect(_ workers: [NIOLoopBound<LoadWorker>]) async throws {
        let address: SocketAddress
        do {
            address = try SocketAddress.makeAddressResolvingHost(plan.host, port: plan.port)
        } catch {
            throw LoadError.unreachable("\(ConnectFailure(error))")
        }
        let all = plan.connections + plan.idleConnections
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            for index in 0..<all {
                if index >= LoadRun.openingMaximum { try await tasks.next() }
                if control.withLock({ $0.isStopped }) { throw LoadError.interrupted }
                let worker = workers[index % workers.count]
                let isIdle = index >= plan.connections
                tasks.addTask { [plan] in try await LoadRun.connect(worker, to: address, plan, isIdle: isIdle) }
            }
            try await tasks.waitForAll()
        }
    }

    private static func connect(
        _ worker: NIOLoopBound<LoadWorker>,
        to address: SocketAddress,
        _ plan: LoadPlan,
        isIdle: Bool
    ) async throws {
        let timeout = TimeAmount.nanoseconds(Int64(LoadPlan.replyTimeout * 1e9))
        let handshake = worker.eventLoop.makePromise(of: Void.self)
        let timer = worker.eventLoop.scheduleTask(in: timeout) { handshake.fail(LoadError.noHandshake) }
        defer { timer.cancel() }
        do {
            _ = try await ClientBootstrap(group: worker.eventLoop)
                .connectTimeout(timeout)
                .channelOption(.tcpOption(.tcp_nodelay), value: 1)
                // A second read in a row would find nothing, because replies arrive in one piece.
                .channelOption(.maxMessagesPerRead, value: 1)
                .channelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try plan.encryption?(channel.pipeline.syncOperations)
                        try channel.pipeline.syncOperations.addHandler(
                            LoadConnection(
                                worker: worker.value,
                                isIdle: isIdle,
                                token: plan.token,
                                handshake: handshake
                            )
                        )
                    }
                }
                .connect(to: address)
                .get()
        } catch {
            handshake.fail(LoadError.unreachable("\(ConnectFailure(error))"))
        }
        try await handshake.futureResult.get()
    }
}
