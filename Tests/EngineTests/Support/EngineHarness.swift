import Logging
import Postgres
import Synchronization
import TestSupport
import Testing
import Usage

@testable import Engine

/// Runs an engine for a test. Like an event loop, it submits requests, each with its slot, and awaits their outcomes.
final class EngineHarness: Sendable {
    let engine: BatchingEngine
    let mailbox = CollectingMailbox()
    let log = RecordingLog()
    private let mailboxIndex: Int
    private let nextSlot = Mutex<UInt64>(0)

    /// - Parameters:
    ///   - requestTimeout: long by default, so that only tests of timeouts depend on the machine's speed.
    ///   - isMonitored: whether the database answers another session, as it does the monitor's, whatever the lanes wait
    ///     for.
    init(
        _ conninfo: String,
        unknownUsersPolicy: UnknownUsersPolicy = .trial,
        lanes: Int = 2,
        manageURL: String? = nil,
        placements: CurrentPlacements? = nil,
        requestTimeout: Duration = waitLimit,
        sendsNotifications: Bool = false,
        isMonitored: Bool = true
    ) {
        let configuration = EngineConfiguration(
            database: DatabaseTopology(conninfo),
            unknownUsersPolicy: unknownUsersPolicy,
            manageURL: manageURL,
            lanes: lanes,
            // No request is refused because this machine is slow.
            queueWaitMaximum: requestTimeout,
            requestTimeout: requestTimeout,
            connectTimeout: waitLimit,
            sendsNotifications: sendsNotifications
        )
        let silence = configuration.database.silence
        if isMonitored { silence.whenDoubted { silence.end() } }
        engine = BatchingEngine(configuration, placements: placements, logger: log.logger)
        mailboxIndex = engine.register(mailbox)
    }

    /// Runs the engine during `body`, and closes it afterwards.
    func running<Value: Sendable>(_ body: @Sendable () async throws -> Value) async throws -> Value {
        let engine = engine
        let run = Task { await engine.run() }
        do {
            try await waitUntil("every lane connects") { isConnected }
            let value = try await body()
            engine.close()
            await run.value
            for event in log.events where event.level == .critical {
                Issue.record("the engine logged: \(event.message) \(event.metadata)")
            }
            return value
        } catch {
            engine.close()
            await run.value
            throw error
        }
    }

    /// Runs an engine on a database during `body`.
    static func serving(
        _ database: TestDatabase,
        lanes: Int = 2,
        _ body: @Sendable (TestDatabase, EngineHarness) async throws -> Void
    ) async throws {
        let engine = EngineHarness(database.conninfo, lanes: lanes)
        try await engine.running { try await body(database, engine) }
    }

    /// How many statements the slow path has executed.
    var slowPathStatements: UInt64 {
        engine.metrics.statements.filter { $0.kind == .slowPath }.reduce(0) { $0 + $1.times.count }
    }

    var isConnected: Bool { engine.snapshot.lanesConnected == engine.configuration.lanes }

    /// Submits requests as one iteration of an event loop would: all requests of a lane at once.
    ///
    /// - Parameter timeout: the time until the requests' deadline; by default the engine's request timeout.
    /// - Returns: a slot for each request.
    func submit(_ requests: [(user: UserID, operation: EngineOperation)], within timeout: Duration? = nil) -> [UInt64] {
        let timeout = timeout ?? engine.configuration.requestTimeout
        return submit(requests.map { ($0.user, $0.operation, timeout: timeout) })
    }

    /// Each request with the time until its own deadline.
    func submit(_ requests: [(UserID, EngineOperation, timeout: Duration)]) -> [UInt64] {
        let now = ContinuousClock.now
        let firstSlot = nextSlot.withLock { next in
            defer { next += UInt64(requests.count) }
            return next
        }
        let routes = engine.routes
        var staged: [[Request]] = Array(repeating: [], count: engine.configuration.lanes)
        for (index, (user, operation, timeout)) in requests.enumerated() {
            staged[routes.lane(of: user)].append(
                Request(
                    user: user,
                    operation: operation,
                    returnAddress: ReturnAddress(
                        mailboxIndex: mailboxIndex,
                        connection: 0,
                        slot: firstSlot + UInt64(index)
                    ),
                    deadline: Deadline(now + timeout)
                )
            )
        }
        for lane in staged.indices where !staged[lane].isEmpty {
            guard let (refused, error) = engine.enqueue(staged[lane], lane: lane) else { continue }
            mailbox.deliver(refused.map { Completion(returnAddress: $0.returnAddress, outcome: .failure(error)) })
        }
        return requests.indices.map { firstSlot + UInt64($0) }
    }

    /// Outcomes in the order of the slots.
    func outcomes(of slots: [UInt64], sourceLocation: SourceLocation = #_sourceLocation) async throws -> [Outcome] {
        var outcomes: [Outcome] = []
        for slot in slots {
            let outcome = await mailbox.outcome(of: slot)
            outcomes.append(try #require(outcome, "request \(slot) got no outcome", sourceLocation: sourceLocation))
        }
        return outcomes
    }

    func execute(
        _ requests: [(user: UserID, operation: EngineOperation)],
        within timeout: Duration? = nil,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> [Outcome] {
        try await outcomes(of: submit(requests, within: timeout), sourceLocation: sourceLocation)
    }

    /// Submits a query to the engine's report reader.
    ///
    /// - Returns: the query's slot. If the reader refuses the query, the outcome is already in the mailbox.
    func submit(_ query: ReportQuery, within timeout: Duration = waitLimit) -> UInt64 {
        let slot = nextSlot.withLock { next in
            defer { next += 1 }
            return next
        }
        let address = ReturnAddress(mailboxIndex: mailboxIndex, connection: 0, slot: slot)
        let request = ReportRequest(query: query, returnAddress: address, deadline: .now + timeout)
        if let error = engine.reports.enqueue(request) {
            mailbox.deliver([Completion(returnAddress: address, outcome: .failure(error))])
        }
        return slot
    }

    /// Subscribes to changes of users, as the connection with this number.
    func subscribe(_ users: [UserID], connection: Int, within timeout: Duration = waitLimit) -> UInt64 {
        let slot = nextSlot.withLock { next in
            defer { next += 1 }
            return next
        }
        let address = ReturnAddress(mailboxIndex: mailboxIndex, connection: connection, slot: slot)
        engine.changes.subscribe(SubscribeRequest(users: users, returnAddress: address, deadline: .now + timeout))
        return slot
    }

    func subscriber(_ connection: Int) -> ChangeSubscriber {
        ChangeSubscriber(mailboxIndex: mailboxIndex, connection: connection)
    }

    func read(_ query: ReportQuery, sourceLocation: SourceLocation = #_sourceLocation) async throws -> Outcome {
        try await outcomes(of: [submit(query)], sourceLocation: sourceLocation)[0]
    }

    func execute(
        _ user: UserID,
        _ operation: EngineOperation,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> Outcome {
        try await execute([(user, operation)], sourceLocation: sourceLocation)[0]
    }
}
