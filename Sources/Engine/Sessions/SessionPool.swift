import DequeModule
import Logging
import Postgres
import Synchronization

/// Database sessions for rare requests that may take long, apart from the lanes. Each has a thread of its own, because
/// libpq blocks. A session is opened when first needed and closed when idle.
package final class SessionPool: Sendable {
    /// The reason why work was not done, or not completed.
    package enum Failure: Error, Sendable, Equatable {
        /// The queue is full; nothing was done.
        case overloaded
        /// The deadline passed before a session was free; nothing was done.
        case tooLate
        /// The service shuts down; nothing was done.
        case closed
        /// The task that awaited the result was cancelled. Nothing was done, unless the work had begun.
        case cancelled
        case database(PostgresError)
    }

    private struct Job {
        var number: UInt64
        var deadline: ContinuousClock.Instant
        /// Does the work, and returns a function that delivers the result. That is called when no error is possible any
        /// more.
        var attempt: @Sendable (DatabaseConnection) throws(PostgresError) -> @Sendable () -> Void
        var fail: @Sendable (Failure) -> Void
    }

    private struct State {
        var waiting: Deque<Job> = []
        var lastNumber: UInt64 = 0
        /// The numbers of the threads that sleep.
        var idle: [Int] = []
        var isClosed = false
    }

    /// The time after which an unused connection is closed.
    private static let idleTimeout = Duration.seconds(30)

    private let options: ConnectionOptions
    private let capacity: Int
    private let name: String
    private let wakes: [WakePipe]
    private let state = Mutex(State())
    private let logger: Logger
    private let invalidValues: InvalidValueLog

    /// - Parameters:
    ///   - name: the name of the threads, and of the sessions in `pg_stat_activity`, in both after the word "headroom".
    ///   - capacity: the most jobs that may wait; one more fails with `overloaded`.
    package convenience init(
        name: String,
        _ configuration: EngineConfiguration,
        sessions: Int = 1,
        capacity: Int = 256,
        readOnly: Bool,
        logger: Logger
    ) {
        self.init(
            name: name,
            options: configuration.sessionOptions(name, readOnly: readOnly),
            sessions: sessions,
            capacity: capacity,
            logger: logger
        )
    }

    init(name: String, options: ConnectionOptions, sessions: Int = 1, capacity: Int = 256, logger: Logger) {
        self.options = options
        self.name = name
        self.capacity = capacity
        wakes = (0..<sessions).map { _ in WakePipe() }
        self.logger = logger
        invalidValues = InvalidValueLog(logger)
    }

    /// Runs work in a session, as soon as one is free.
    ///
    /// If the task is cancelled, waiting work is dropped. Work that has begun may still complete; its result is
    /// discarded.
    ///
    /// - Parameters:
    ///   - deadline: no work begins after it. The work must observe it too, as `DatabaseConnection`'s methods do.
    ///   - work: the work, which may block. It is repeated on a new connection if an idle one turns out to be broken,
    ///     so it must be safe to repeat.
    package func perform<Value: Sendable>(
        by deadline: ContinuousClock.Instant,
        _ work: @escaping @Sendable (DatabaseConnection) throws(PostgresError) -> Value
    ) async throws(Failure) -> Value {
        let promise = Promise<Value, Failure>()
        let number = state.withLock { state in
            state.lastNumber += 1
            return state.lastNumber
        }
        let job = Job(
            number: number,
            deadline: deadline,
            attempt: { connection throws(PostgresError) in
                let value = try work(connection)
                return { promise.complete(.success(value)) }
            },
            fail: { promise.complete(.failure($0)) }
        )
        if let failure = enqueue(job) { throw failure }
        return try await withTaskCancellationHandler {
            await promise.result
        } onCancel: {
            removeWaiting(number)
            promise.complete(.failure(.cancelled))
        }.get()
    }

    private func removeWaiting(_ number: UInt64) {
        state.withLock { $0.waiting.removeAll { $0.number == number } }
    }

    /// The number of jobs that no session has begun.
    package var waitingCount: Int { state.withLock { $0.waiting.count } }

    private func enqueue(_ job: Job) -> Failure? {
        let (failure, sleeper) = state.withLock { state -> (Failure?, Int?) in
            guard !state.isClosed else { return (.closed, nil) }
            guard state.waiting.count < capacity else { return (.overloaded, nil) }
            state.waiting.append(job)
            return (nil, state.idle.popLast())
        }
        if let sleeper { wakes[sleeper].wake() }
        return failure
    }

    /// Runs until `close()` was called and every job that has begun is done.
    package func run() async {
        await withTaskGroup(of: Void.self) { group in
            for number in wakes.indices {
                group.addTask { await runThread(named: "headroom.\(self.name)") { self.serve(number) } }
            }
        }
    }

    /// Accepts no more work. Waiting jobs fail with `closed`.
    package func close() {
        let waiting = state.withLock { state in
            state.isClosed = true
            defer { state.waiting = [] }
            return state.waiting
        }
        for job in waiting { job.fail(.closed) }
        for wake in wakes { wake.wake() }
    }

    // MARK: On a thread of the pool

    private enum Step {
        case job(Job)
        case sleep
        case end
    }

    private func serve(_ number: Int) {
        let session = ReconnectingSession<Void>(options: options, wake: wakes[number], logger: logger)
        while true {
            switch nextStep(number) {
            case .end: return session.close()
            case .sleep: session.sleepIdle(timeout: SessionPool.idleTimeout)
            case .job(let job): run(job, in: session)
            }
        }
    }

    private func nextStep(_ number: Int) -> Step {
        state.withLock { state in
            state.idle.removeAll { $0 == number }
            if let job = state.waiting.popFirst() { return .job(job) }
            if state.isClosed { return .end }
            state.idle.append(number)
            return .sleep
        }
    }

    private func run(_ job: Job, in session: ReconnectingSession<Void>) {
        while true {
            guard ContinuousClock.now < job.deadline else { return job.fail(.tooLate) }
            // A new connection that breaks at once breaks again, so the work is repeated only after an idle one broke.
            let mayRepeat = session.connection != nil
            do throws(PostgresError) {
                let connection = try session.connect { connection, deadline throws(PostgresError) in
                    try connection.requireDurableCommits(deadline: deadline)
                }
                return try job.attempt(connection)()
            } catch {
                if session.connection?.isUsable == false { session.drop(error) }
                if mayRepeat, case .connectionLost = error.kind { continue }
                log(error)
                return job.fail(.database(error))
            }
        }
    }

    private func log(_ error: PostgresError) {
        if error.isAboutInvalidValue {
            invalidValues.record(error)
        } else if !error.isTransient, !error.isAboutRequest {
            logger.error("work in a session failed", metadata: ["pool": "\(name)", "error": "\(error)"])
        }
    }
}

/// A result that is completed once and awaited once: attempts to complete it again have no effect.
private final class Promise<Value: Sendable, Failure: Error>: Sendable {
    private enum State {
        /// Nobody awaits the result yet. Can transition to: awaited, completed.
        case open
        /// The result is awaited. Can transition to: completed.
        case awaited(CheckedContinuation<Result<Value, Failure>, Never>)
        /// The result is there. Final.
        case completed(Result<Value, Failure>)
    }

    private let state = Mutex(State.open)

    func complete(_ result: Result<Value, Failure>) {
        let awaiting = state.withLock { state -> CheckedContinuation<Result<Value, Failure>, Never>? in
            switch state {
            case .completed: return nil
            case .open:
                state = .completed(result)
                return nil
            case .awaited(let continuation):
                state = .completed(result)
                return continuation
            }
        }
        awaiting?.resume(returning: result)
    }

    var result: Result<Value, Failure> {
        get async {
            await withCheckedContinuation { continuation in
                let completed = state.withLock { state -> Result<Value, Failure>? in
                    if case .completed(let result) = state { return result }
                    state = .awaited(continuation)
                    return nil
                }
                if let completed { continuation.resume(returning: completed) }
            }
        }
    }
}
