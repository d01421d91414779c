import DequeModule
import Logging
import Postgres
import Synchronization

/// Database sessions for what is asked seldom and may take long, away from the lanes: each with a thread of its own, since
/// libpq blocks. Opened when first needed, given back when idle.
package final class SessionPool: Sendable {
    /// Why work was not done, or not to its end.
    package enum Failure: Error, Sendable, Equatable {
        /// As many wait already as may; nothing was done.
        case overloaded
        /// Its time was up before a session was free; nothing was done.
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
        /// Does the work, and returns how its result is told; that is told once no error can come any more.
        var attempt: @Sendable (Connection) throws(PostgresError) -> @Sendable () -> Void
        var fail: @Sendable (Failure) -> Void
    }

    private struct State {
        var waiting: Deque<Job> = []
        var lastNumber: UInt64 = 0
        /// Numbers of the threads that sleep.
        var idle: [Int] = []
        var isClosed = false
    }

    /// A connection that nobody needs is given back after so long.
    private static let idleTimeout = Duration.seconds(30)

    private let options: ConnectionOptions
    private let capacity: Int
    private let name: String
    private let wakes: [WakePipe]
    private let state = Mutex(State())
    private let logger: Logger
    private let invalidValues: InvalidValueLog

    /// - Parameters:
    ///   - name: of the threads, and of the sessions in `pg_stat_activity`, each after "headroom".
    ///   - capacity: jobs that may wait; one more is refused as overload.
    package init(
        name: String,
        _ configuration: EngineConfiguration,
        sessions: Int = 1,
        capacity: Int = 256,
        readOnly: Bool,
        logger: Logger
    ) {
        options = configuration.sessionOptions(name, readOnly: readOnly)
        self.name = name
        self.capacity = capacity
        wakes = (0..<sessions).map { _ in WakePipe() }
        self.logger = logger
        invalidValues = InvalidValueLog(logger)
    }

    /// Does work in a session, as soon as one is free.
    ///
    /// If the task is cancelled, waiting work is dropped. Work that has begun may still complete; its result is discarded.
    ///
    /// - Parameters:
    ///   - deadline: by which the work has to bound itself too, as `Connection`'s methods do.
    ///   - work: blocks. Done again on a new connection when an idle one turns out to be broken, so it must be safe to
    ///     repeat.
    package func perform<Value: Sendable>(
        by deadline: ContinuousClock.Instant,
        _ work: @escaping @Sendable (Connection) throws(PostgresError) -> Value
    ) async throws(Failure) -> Value {
        let promise = OneResult<Value, Failure>()
        let number = state.withLock { state in
            state.lastNumber += 1
            return state.lastNumber
        }
        let job = Job(
            number: number,
            deadline: deadline,
            attempt: { connection throws(PostgresError) in
                let value = try work(connection)
                return { promise.settle(.success(value)) }
            },
            fail: { promise.settle(.failure($0)) }
        )
        if let failure = enqueue(job) { throw failure }
        return try await withTaskCancellationHandler {
            await promise.result
        } onCancel: {
            withdraw(number)
            promise.settle(.failure(.cancelled))
        }.get()
    }

    private func withdraw(_ number: UInt64) {
        state.withLock { $0.waiting.removeAll { $0.number == number } }
    }

    /// Pieces of work that no session has taken up yet.
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

    /// Runs until `close()` was called and everything that was taken in is done.
    package func run() async {
        await withTaskGroup(of: Void.self) { group in
            for number in wakes.indices {
                group.addTask {
                    await withCheckedContinuation { continuation in
                        startThread(named: "headroom.\(self.name)") {
                            self.serve(number)
                            continuation.resume()
                        }
                    }
                }
            }
        }
    }

    /// Takes in nothing more, and does nothing more of what waits.
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

    private enum Turn {
        case job(Job)
        case sleep
        case end
    }

    private func serve(_ number: Int) {
        var connection: Connection?
        while true {
            switch nextTurn(number) {
            case .end:
                connection?.close()
                return
            case .sleep:
                let until = connection.map { _ in ContinuousClock.now + SessionPool.idleTimeout }
                let isReadable = wakes[number].sleep(orUntilReadable: connection?.socket ?? -1, until: until)
                // An idle connection has nothing to say unless it is closing.
                if isReadable || until.map({ ContinuousClock.now >= $0 }) ?? false {
                    connection?.close()
                    connection = nil
                }
            case .job(let job):
                connection = carry(job, on: connection)
            }
        }
    }

    private func nextTurn(_ number: Int) -> Turn {
        state.withLock { state in
            state.idle.removeAll { $0 == number }
            if let job = state.waiting.popFirst() { return .job(job) }
            if state.isClosed { return .end }
            state.idle.append(number)
            return .sleep
        }
    }

    private func connect() throws(PostgresError) -> Connection {
        let connection = try Connection.connect(options)
        try connection.answerOnlyWhatIsDurable(deadline: .now + options.connectTimeout)
        return connection
    }

    /// - Returns: the connection, where it can be used on.
    private func carry(_ job: Job, on idle: Connection?) -> Connection? {
        var connection = idle
        while true {
            guard ContinuousClock.now < job.deadline else {
                job.fail(.tooLate)
                return connection
            }
            // A new connection that breaks at once breaks again: only one that was idle is worth another attempt.
            let mayRepeat = connection != nil
            do throws(PostgresError) {
                let open = if let connection { connection } else { try connect() }
                connection = open
                try job.attempt(open)()
                return open
            } catch {
                if let open = connection, !open.isUsable {
                    open.close()
                    connection = nil
                }
                if mayRepeat, case .connectionLost = error.kind { continue }
                // Class 22 and unknown users are what was asked with; the rest is for who runs this.
                let isAboutRequest = error.sqlState?.isClass("22") == true || error.sqlState == .unknownUser
                if error.isAboutInvalidValue {
                    invalidValues.record(error)
                } else if !error.isTransient, !isAboutRequest {
                    logger.error("work in a session failed", metadata: ["pool": "\(name)", "error": "\(error)"])
                }
                job.fail(.database(error))
                return connection
            }
        }
    }
}

/// A result that several may settle: the first one does.
private final class OneResult<Value: Sendable, Failure: Error>: Sendable {
    private enum State {
        /// Can transition to: awaited, settled.
        case open
        /// Can transition to: settled.
        case awaited(CheckedContinuation<Result<Value, Failure>, Never>)
        /// Final.
        case settled(Result<Value, Failure>)
    }

    private let state = Mutex(State.open)

    func settle(_ result: Result<Value, Failure>) {
        let awaiting = state.withLock { state -> CheckedContinuation<Result<Value, Failure>, Never>? in
            switch state {
            case .settled: return nil
            case .open:
                state = .settled(result)
                return nil
            case .awaited(let continuation):
                state = .settled(result)
                return continuation
            }
        }
        awaiting?.resume(returning: result)
    }

    /// Awaited once.
    var result: Result<Value, Failure> {
        get async {
            await withCheckedContinuation { continuation in
                let settled = state.withLock { state -> Result<Value, Failure>? in
                    if case .settled(let result) = state { return result }
                    state = .awaited(continuation)
                    return nil
                }
                if let settled { continuation.resume(returning: settled) }
            }
        }
    }
}
