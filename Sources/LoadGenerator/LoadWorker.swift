import NIOCore

/// Sends requests over the connections of one event loop and measures the replies. Used only on that loop.
///
/// Times are nanoseconds of the event loop's clock.
final class LoadWorker {
    /// The times of a run, the same for all workers.
    struct Times {
        /// When sending starts.
        var start: UInt64
        /// When the warm-up ends. Requests that are sent, or due, from then on are measured.
        var measurementStart: UInt64
        /// When sending ends; nil when a number of requests ends it.
        var end: UInt64?

        init(start: UInt64, plan: LoadPlan) {
            self.start = start
            measurementStart = start + UInt64(plan.warmup * 1e9)
            if case .seconds(let seconds) = plan.extent { end = measurementStart + UInt64(seconds * 1e9) }
        }
    }

    private enum Phase {
        case notStarted, sending, draining, finished
    }

    let eventLoop: any EventLoop
    private let plan: LoadPlan
    private let emit: (WorkerEvent) -> Void
    private var writer: RequestWriter
    private var schedule: ArrivalSchedule?
    private let makeSchedule: (Times) -> ArrivalSchedule?

    private var connections: [LoadConnection] = []
    /// The index of the connection that an open loop used last.
    private var latestConnection = 0
    private var phase = Phase.notStarted
    private var times: Times?
    /// How many measured requests may still be sent.
    private var quota: Int
    private let maximumInFlight: Int

    /// Requests in flight over all connections, including those of the warm-up.
    private var inFlight = 0
    private var result = WorkerResult()
    private var second = Second()
    private var secondNumber = 0
    private var lastReplyAt: UInt64 = 0
    /// When the measured requests of the current `sendDue` were due. It is a property to reuse the memory.
    private var dueTimes: [UInt64] = []
    /// The connections on which `sendDue` has prepared requests. A property, to reuse the memory.
    private var connectionsToFlush: [LoadConnection] = []

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
        let reservationsInRow = if case .closed(let pipeline) = plan.pace { pipeline } else { 1 }
        writer = RequestWriter(
            plan.request,
            reservationsInRow: reservationsInRow,
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
        maximumInFlight = share(of: plan.waitingMaximum)
    }

    var now: UInt64 { eventLoop.now.uptimeNanoseconds }

    // MARK: Start and end

    /// Starts sending at `times.start`.
    func start(_ times: Times) {
        guard phase == .notStarted else { return }
        self.times = times
        schedule = makeSchedule(times)
        at(times.measurementStart + 1_000_000_000) { $0.secondEnded() }
        if let end = times.end { at(end) { $0.endSending() } }
        if times.start > now { at(times.start) { $0.begin() } } else { begin() }
    }

    private func begin() {
        guard phase == .notStarted else { return }
        phase = .sending
        guard !connections.isEmpty, quota > 0 else { return endSending() }
        switch plan.pace {
        case .open:
            sendDue()
        case .closed(let pipeline):
            for connection in connections { send(pipeline, on: connection) }
        }
    }

    /// Stops sending. The run ends when all replies have arrived, after `LoadPlan.replyTimeout`, or with a second call.
    func stop() {
        if phase == .draining { finish() } else { endSending() }
    }

    private func endSending() {
        guard phase == .notStarted || phase == .sending else { return }
        phase = .draining
        result.seconds = elapsed(to: now)
        for connection in connections { commitReservations(on: connection) }
        finishIfAnswered()
        if phase == .draining { at(now + UInt64(LoadPlan.replyTimeout * 1e9)) { $0.finish() } }
    }

    private func finishIfAnswered() {
        if phase == .draining, inFlight == 0 { finish() }
    }

    private func finish() {
        guard phase != .finished else { return }
        phase = .finished
        result.seconds = max(result.seconds, elapsed(to: lastReplyAt))
        recordUnanswered()
        emit(.second(secondNumber, second))
        emit(.finished(result))
        for connection in connections { connection.close() }
        connections = []
    }

    /// Records how long each unanswered request has waited.
    private func recordUnanswered() {
        guard let measurementStart = times?.measurementStart else { return }
        let now = now
        for connection in connections {
            for sent in connection.sentAt where sent >= measurementStart { result.waits.record(now - sent) }
        }
    }

    private func elapsed(to instant: UInt64) -> Double {
        guard let measurementStart = times?.measurementStart, instant > measurementStart else { return 0 }
        return Double(instant - measurementStart) / 1e9
    }

    private func secondEnded() {
        guard phase != .finished, let times else { return }
        emit(.second(secondNumber, second))
        second = Second()
        secondNumber += 1
        at(times.measurementStart + UInt64(secondNumber + 1) * 1_000_000_000) { $0.secondEnded() }
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
        inFlight -= connection.inFlight
        if connections.isEmpty, phase == .sending { endSending() }
        finishIfAnswered()
    }

    // MARK: Sending

    /// Sends up to `count` requests on a connection in one write, within the quota.
    @inline(__always)
    func send(_ count: Int, on connection: LoadConnection) {
        guard phase == .sending, let measurementStart = times?.measurementStart else { return }
        let count = min(count, quota)
        guard count > 0 else { return }
        for _ in 0..<count { connection.prepare(&writer) }
        let now = now
        for _ in 0..<count { connection.noteSent(at: now) }
        // The requests are counted before the write: a failing write subtracts the connection's requests in flight.
        inFlight += count
        connection.flush()
        if now >= measurementStart { countSent(count) }
    }

    /// Open loop: sends all due requests, with one write for each connection, and schedules the next call.
    private func sendDue() {
        guard phase == .sending, let measurementStart = times?.measurementStart, var schedule else { return }
        let now = now
        while schedule.due <= now, quota > 0 {
            let due = schedule.due
            if let end = times?.end, due >= end { break }
            schedule.advance()
            guard inFlight < maximumInFlight else {
                if due >= measurementStart {
                    result.dropped += 1
                    quota -= 1
                }
                continue
            }
            latestConnection = latestConnection + 1 < connections.count ? latestConnection + 1 : 0
            let connection = connections[latestConnection]
            connection.prepare(&writer)
            connection.noteSent(at: due)
            if !connection.awaitsFlush {
                connection.awaitsFlush = true
                connectionsToFlush.append(connection)
            }
            inFlight += 1
            if due >= measurementStart {
                dueTimes.append(due)
                quota -= 1
            }
        }
        self.schedule = schedule
        for connection in connectionsToFlush { connection.flush() }
        connectionsToFlush.removeAll(keepingCapacity: true)
        if !dueTimes.isEmpty {
            // The clock is read after the writes, because the time that they take delays the requests too.
            let sent = self.now
            for due in dueTimes { result.sendLag.record(sent - due) }
            result.requests += dueTimes.count
            dueTimes.removeAll(keepingCapacity: true)
        }
        guard phase == .sending else { return }
        guard quota > 0 else { return endSending() }
        do {
            try eventLoop.assumeIsolated().scheduleCallback(
                at: .uptimeNanoseconds(schedule.due),
                handler: self
            )
        } catch {
            // An event loop refuses a callback only after its shutdown.
            finish()
        }
    }

    /// Commits, after the end of sending, what a connection still holds, once its requests are answered.
    private func commitReservations(on connection: LoadConnection) {
        guard connection.inFlight == 0, let measurementStart = times?.measurementStart else { return }
        let count = connection.prepareCommits(writer)
        guard count > 0 else { return }
        let now = now
        for _ in 0..<count { connection.noteSent(at: now) }
        inFlight += count
        connection.flush()
        if now >= measurementStart { result.requests += count }
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
        inFlight -= 1
        guard let measurementStart = times?.measurementStart, sent >= measurementStart else {
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
            commitReservations(on: connection)
            finishIfAnswered()
        case .notStarted, .finished:
            break
        }
    }
}

extension LoadWorker: NIOScheduledCallbackHandler {
    func handleScheduledCallback(eventLoop: some EventLoop) {
        sendDue()
    }
}
