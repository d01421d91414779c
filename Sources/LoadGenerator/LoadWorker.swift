import NIOCore

/// Sends the requests of one event loop's connections. Used only on that loop.
final class LoadWorker {
    /// The times of a run, the same for all workers.
    struct Times {
        /// When sending starts.
        var start: UInt64
        /// Requests sent from here on are measured.
        var measured: UInt64
        /// When sending ends; nil when a number of requests ends it.
        var end: UInt64?

        init(start: UInt64, plan: LoadPlan) {
            self.start = start
            measured = start + UInt64(plan.warmup * 1e9)
            if case .seconds(let seconds) = plan.extent { end = measured + UInt64(seconds * 1e9) }
        }
    }

    private enum Phase {
        case waiting, sending, draining, finished
    }

    let eventLoop: any EventLoop
    private let plan: LoadPlan
    private let emit: (WorkerEvent) -> Void
    private var writer: RequestWriter
    private var schedule: ArrivalSchedule?
    private let makeSchedule: (Times) -> ArrivalSchedule?

    private var connections: [LoadConnection] = []
    /// The index of the latest connection used in an open loop.
    private var nextConnection = 0
    private var phase = Phase.waiting
    private var times: Times?
    /// The measured requests that may still be sent.
    private var quota: Int
    private let waitingMaximum: Int

    /// Requests in flight over all connections, including those of the warm-up.
    private var waiting = 0
    private var result = WorkerResult()
    private var second = Second()
    private var secondNumber = 0
    private var lastReplyAt: UInt64 = 0
    /// When the requests of the current `sendDue` were due, and their connections. Kept to reuse the memory.
    private var written: [UInt64] = []
    private var touched: [LoadConnection] = []

    /// - Parameters:
    ///   - number: of this worker, from 0 to `plan.threads` - 1.
    ///   - emit: called on the event loop.
    init(
        eventLoop: any EventLoop,
        plan: LoadPlan,
        number: Int,
        keyPrefix: String,
        sampler: UserSampler,
        random: SeededRandom,
        emit: @escaping (WorkerEvent) -> Void
    ) {
        self.eventLoop = eventLoop
        self.plan = plan
        self.emit = emit
        var random = random
        let gaps = random.split()
        writer = RequestWriter(
            plan.request,
            userPrefix: plan.userPrefix,
            keyPrefix: keyPrefix,
            worker: number,
            sampler: sampler,
            random: random.split()
        )
        makeSchedule = { times in
            guard case .open(let rate, let arrivals) = plan.pace else { return nil }
            return ArrivalSchedule(
                arrivals,
                rate: rate,
                start: times.start,
                worker: number,
                of: plan.threads,
                random: gaps
            )
        }
        func share(of all: Int) -> Int { all / plan.threads + (number < all % plan.threads ? 1 : 0) }
        quota = if case .requests(let count) = plan.extent { share(of: count) } else { .max }
        waitingMaximum = share(of: plan.waitingMaximum)
    }

    var now: UInt64 { eventLoop.now.uptimeNanoseconds }

    // MARK: Start and end

    /// Starts sending at `times.start`.
    func start(_ times: Times) {
        guard phase == .waiting else { return }
        self.times = times
        schedule = makeSchedule(times)
        at(times.measured + 1_000_000_000) { $0.secondEnded() }
        if let end = times.end { at(end) { $0.endSending() } }
        if times.start > now { at(times.start) { $0.begin() } } else { begin() }
    }

    private func begin() {
        guard phase == .waiting else { return }
        phase = .sending
        guard !connections.isEmpty, quota > 0 else { return endSending() }
        switch plan.pace {
        case .open:
            sendDue()
        case .closed(let pipeline):
            for connection in connections { send(pipeline, on: connection) }
        }
    }

    /// Stops sending, and ends when all replies have arrived or after `LoadPlan.replyTimeout`. The second call ends at once.
    func stop() {
        if phase == .draining { finish() } else { endSending() }
    }

    private func endSending() {
        guard phase == .waiting || phase == .sending else { return }
        phase = .draining
        result.seconds = elapsed(to: now)
        finishIfAnswered()
        if phase == .draining { at(now + UInt64(LoadPlan.replyTimeout * 1e9)) { $0.finish() } }
    }

    private func finishIfAnswered() {
        if phase == .draining, waiting == 0 { finish() }
    }

    private func finish() {
        guard phase != .finished else { return }
        phase = .finished
        result.seconds = max(result.seconds, elapsed(to: lastReplyAt))
        recordWaits()
        emit(.second(secondNumber, second))
        emit(.finished(result))
        for connection in connections { connection.close() }
        connections = []
    }

    private func recordWaits() {
        guard let measured = times?.measured else { return }
        let now = now
        for connection in connections {
            for sent in connection.sentAt where sent >= measured { result.waits.record(now - sent) }
        }
    }

    private func elapsed(to instant: UInt64) -> Double {
        guard let measured = times?.measured, instant > measured else { return 0 }
        return Double(instant - measured) / 1e9
    }

    private func secondEnded() {
        guard phase != .finished, let times else { return }
        emit(.second(secondNumber, second))
        second = Second()
        secondNumber += 1
        at(times.measured + UInt64(secondNumber + 1) * 1_000_000_000) { $0.secondEnded() }
    }

    private func at(_ instant: UInt64, _ work: @escaping (LoadWorker) -> Void) {
        eventLoop.assumeIsolated().scheduleTask(deadline: .uptimeNanoseconds(instant)) { work(self) }
    }

    // MARK: Connections

    /// The connection has completed its handshake.
    func add(_ connection: LoadConnection) {
        if !connection.isIdle { connections.append(connection) }
    }

    /// The connection has closed.
    func lost(_ connection: LoadConnection, reason: String) {
        guard phase != .finished else { return }
        result.breakReason = result.breakReason ?? reason
        guard !connection.isIdle else {
            result.idleConnectionsClosed += 1
            return
        }
        result.brokenConnections += 1
        connections.removeAll { $0 === connection }
        waiting -= connection.inFlight
        if connections.isEmpty, phase == .sending { endSending() }
        finishIfAnswered()
    }

    // MARK: Sending

    /// Sends up to `count` requests on a connection in one write, within the quota.
    @inline(__always)
    func send(_ count: Int, on connection: LoadConnection) {
        guard phase == .sending, let measured = times?.measured else { return }
        let count = min(count, quota)
        guard count > 0 else { return }
        for _ in 0..<count { connection.prepare(&writer) }
        let now = now
        for _ in 0..<count { connection.noteSent(at: now) }
        // Before the write: a failing write subtracts the connection's requests in flight.
        waiting += count
        connection.flush()
        if now >= measured { countSent(count) }
    }

    /// Open loop: sends all due requests, with one write for each connection, and schedules the next call.
    private func sendDue() {
        guard phase == .sending, let measured = times?.measured, var schedule else { return }
        let now = now
        while schedule.due <= now, quota > 0 {
            let due = schedule.due
            if let end = times?.end, due >= end { break }
            schedule.advance()
            guard waiting < waitingMaximum else {
                if due >= measured {
                    result.dropped += 1
                    quota -= 1
                }
                continue
            }
            nextConnection = nextConnection + 1 < connections.count ? nextConnection + 1 : 0
            let connection = connections[nextConnection]
            connection.prepare(&writer)
            connection.noteSent(at: due)
            if !connection.awaitsFlush {
                connection.awaitsFlush = true
                touched.append(connection)
            }
            waiting += 1
            if due >= measured {
                written.append(due)
                quota -= 1
            }
        }
        self.schedule = schedule
        for connection in touched { connection.flush() }
        touched.removeAll(keepingCapacity: true)
        if !written.isEmpty {
            // After the writes, because their time delays the requests too.
            let sent = self.now
            for due in written { result.sendLag.record(sent - due) }
            result.requests += written.count
            written.removeAll(keepingCapacity: true)
        }
        guard phase == .sending else { return }
        guard quota > 0 else { return endSending() }
        do {
            try eventLoop.assumeIsolated().scheduleCallback(
                at: .uptimeNanoseconds(schedule.due),
                handler: self
            )
        } catch {
            // Only a loop that is shut down refuses.
            finish()
        }
    }

    private func countSent(_ count: Int) {
        result.requests += count
        quota -= count
        if quota == 0 { endSending() }
    }

    // MARK: Replies

    /// - Parameter sent: when the request was sent, or due.
    @inline(__always)
    func received(_ reply: ReplyScanner.Reply, sentAt sent: UInt64, now: UInt64) {
        waiting -= 1
        guard let measured = times?.measured, sent >= measured else {
            result.warmup.count(reply)
            return
        }
        second.tally.count(reply)
        second.latencies.record(now - sent)
        lastReplyAt = now
    }

    /// All replies of one read have been received.
    @inline(__always)
    func readCompleted(on connection: LoadConnection, replies count: Int) {
        switch phase {
        case .sending:
            if case .closed = plan.pace { send(count, on: connection) }
        case .draining:
            finishIfAnswered()
        case .waiting, .finished:
            break
        }
    }
}

extension LoadWorker: NIOScheduledCallbackHandler {
    func handleScheduledCallback(eventLoop: some EventLoop) {
        sendDue()
    }
}
