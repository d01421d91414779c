import Logging
import Postgres
import TestSupport
import Testing
import Usage

@testable import Engine

/// The sender with a connection of its own, and attempts that a test scripts.
@Suite("A transaction that is sent until its outcome is known")
struct ExactlyOnceSenderTests {
    private enum Event: Equatable {
        case attempt
        /// A sleep while connected.
        case pause
    }

    private final class Requests: Expirable {
        var deadline = Deadline(.now + waitLimit)
        private(set) var failure: EngineError?

        var nextDeadline: Deadline? { failure == nil ? deadline : nil }
        var someExpired = false

        func expire(at now: Deadline, _ error: EngineError, into completions: inout [Completion]) {
            if failure == nil, deadline <= now { failure = error }
        }

        func fail(_ error: EngineError, into completions: inout [Completion]) { failure = failure ?? error }
    }

    /// What became of the requests.
    private struct Sent: Sendable {
        /// The ordinal of the attempt that was committed; nil if none was.
        var committed: Int?
        /// Whether all requests have expired.
        var isExpired = false
        /// Whether nothing was executed, because some have.
        var isLeft = false
        let events: [Event]
        let pausedUntil: ContinuousClock.Instant?
        let deadline: Deadline
        let failure: EngineError?
    }

    private typealias Attempt = ExactlyOnceSender.Attempt
    private typealias Script = @Sendable (_ ordinal: Int, Requests, inout Attempt) throws(PostgresError) -> Void

    /// Used by one thread alone.
    private final class Scene {
        private let requests = Requests()
        private let laneConnection: LaneConnection
        private let wake = WakePipe()
        private var events: [Event] = []
        private var pausedUntil: ContinuousClock.Instant?

        init(_ conninfo: String) {
            let configuration = EngineConfiguration(
                database: DatabaseTopology(conninfo),
                requestTimeout: waitLimit,
                connectTimeout: waitLimit
            )
            laneConnection = LaneConnection(
                options: configuration.sessionOptions("lane"),
                primaryLease: configuration.primaryLease,
                words: CurrentWords(),
                wake: wake,
                logger: .silent
            )
        }

        deinit {
            laneConnection.close()
        }

        func send(_ connected: @escaping (Requests) -> Void, _ script: Script) -> Sent {
            let sender = ExactlyOnceSender(
                laneConnection: laneConnection,
                delivery: OutcomeDelivery(
                    laneConnection: laneConnection,
                    mailboxes: MailboxRegistry(),
                    metrics: LaneMetrics()
                ),
                logger: .silent,
                sleep: { [unowned self] in sleep(until: $0, connected) }
            )
            var attempts = 0
            let reply = sender.executeOnce(nil, in: 0, requests) {
                attempt throws(PostgresError) -> ExactlyOnceSender.AttemptResult<Int> in
                events.append(.attempt)
                attempts += 1
                try script(attempts, requests, &attempt)
                return .committed(attempts, isUnreplicated: false)
            }
            var sent = Sent(
                events: events,
                pausedUntil: pausedUntil,
                deadline: requests.deadline,
                failure: requests.failure
            )
            switch reply {
            case .value(let attempt): sent.committed = attempt
            case .allExpired: sent.isExpired = true
            case .someExpired: sent.isLeft = true
            case .rejected: break
            }
            return sent
        }

        private func sleep(until deadline: ContinuousClock.Instant, _ connected: (Requests) -> Void) {
            if laneConnection.connection != nil {
                events.append(.pause)
                pausedUntil = deadline
            }
            _ = wake.sleep(orUntilReadable: -1, until: deadline)
            laneConnection.advance()
            if laneConnection.connection != nil { connected(requests) }
        }
    }

    /// - Parameters:
    ///   - script: called for each attempt with its ordinal, from 1, which is committed if it throws nothing.
    ///   - connected: called once the connection is open, before the sender finds it.
    private func send(
        connected: @escaping @Sendable (Requests) -> Void = { _ in },
        _ script: @escaping Script
    ) async throws -> Sent {
        let conninfo = try await TestDatabase.fresh().conninfo
        return try await onThread { Scene(conninfo).send(connected, script) }
    }

    @Test(
        "waits after each refusal that follows a lost connection",
        arguments: [SQLState.lockNotAvailable, .deadlockDetected]
    )
    func refusedAfterLoss(state: SQLState) async throws {
        let sent = try await send { attempt, _, _ throws(PostgresError) in
            switch attempt {
            case 1: throw PostgresError(.connectionLost, "scripted")
            case 2, 3: throw PostgresError(.server(state), "scripted")
            default: break
            }
        }
        #expect(sent.committed == 4)
        #expect(sent.events == [.attempt, .attempt, .pause, .attempt, .pause, .attempt])
    }

    @Test("does not wait beyond the next deadline")
    func deadlineBeforePause() async throws {
        let sent = try await send { attempt, requests, _ throws(PostgresError) in
            guard attempt > 1 else { throw PostgresError(.connectionLost, "scripted") }
            requests.deadline = Deadline(.now + .milliseconds(10))
            throw PostgresError(.server(.lockNotAvailable), "scripted")
        }
        #expect(sent.isExpired)
        #expect(sent.pausedUntil == sent.deadline.instant)
        #expect(sent.failure == .unknown)
    }

    @Test("is not sent if its deadline passes while the connection opens: nothing was counted")
    func deadlineWhileConnecting() async throws {
        let expire: @Sendable (Requests) -> Void = { $0.deadline = Deadline(.now) }
        let sent = try await send(connected: expire) { _, _, _ in }
        #expect(sent.isExpired)
        #expect(sent.events.isEmpty)
        #expect(sent.failure == .late)
    }

    @Test(
        "is a repetition after a loss if it may be committed, and is left without those that were answered as late if not",
        arguments: [false, true]
    )
    func lossBeforeWriting(canCommit: Bool) async throws {
        let sent = try await send { ordinal, requests, attempt throws(PostgresError) in
            #expect(attempt.isRepetition == (ordinal > 1))
            guard ordinal == 1 else { return }
            attempt.canCommit = canCommit
            requests.someExpired = true
            throw PostgresError(.connectionLost, "scripted")
        }
        #expect(sent.committed == (canCommit ? 2 : nil))
        #expect(sent.isLeft == !canCommit)
    }

    @Test("gets a new receipt if the present one is already at its number, and takes no answers from it")
    func receiptOfAnotherBatch() async throws {
        let sent = try await send { ordinal, _, attempt throws(PostgresError) in
            if ordinal == 1 { try attempt.requireRepetition() }
            #expect(attempt.number == 1 && !attempt.isRepetition)
        }
        #expect(sent.committed == 2)
        let repeated = try await send { ordinal, _, attempt throws(PostgresError) in
            guard ordinal > 1 else { throw PostgresError(.connectionLost, "scripted") }
            try attempt.requireRepetition()
        }
        #expect(repeated.committed == 2)
    }

    @Test("is no repetition after a loss before it has written") func lossWithoutEffect() async throws {
        let sent = try await send { ordinal, requests, attempt throws(PostgresError) in
            #expect(!attempt.isRepetition)
            attempt.canCommit = false
            switch ordinal {
            case 1: throw PostgresError(.connectionLost, "scripted")
            // The lost session may still hold locks.
            case 2: throw PostgresError(.server(.lockNotAvailable), "scripted")
            default: break
            }
        }
        #expect(sent.committed == 3)
        #expect(sent.events == [.attempt, .attempt, .pause, .attempt])
    }

    @Test("of an operator is executed, with a new receipt, if the database has deleted the lane's")
    func deletedReceipt() async throws {
        try await EngineHarness.serving(.fresh(), lanes: 1) { database, engine in
            for plan in ["paid", "pro"] {
                // As a new process does when the lane was idle for a day.
                try await database.psql.execute("delete from headroom.lane_receipts")
                let outcome = try await engine.execute(ada, .setPlan(PlanChange(user: ada, plan: plan)))
                #expect(outcome.answer?.snapshot.plan.name == plan)
            }
        }
    }
}
