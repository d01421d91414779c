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

    private final class Requests: PendingRequests {
        var deadline = Deadline(.now + waitLimit)
        private(set) var failure: EngineError?

        var nextDeadline: Deadline? { failure == nil ? deadline : nil }
        let someExpired = false

        func expire(at now: Deadline, _ error: EngineError, into completions: inout [Completion]) {
            if failure == nil, deadline <= now { failure = error }
        }

        func fail(_ error: EngineError, into completions: inout [Completion]) {
            failure = failure ?? error
        }
    }

    /// What the sender does with some requests. Used by one thread alone.
    private final class Scene {
        let requests = Requests()
        private let laneConnection: LaneConnection
        private let wake = WakePipe()
        private(set) var events: [Event] = []
        private(set) var pausedUntil: ContinuousClock.Instant?

        init(_ conninfo: String) {
            let configuration = EngineConfiguration(
                databaseURL: conninfo,
                requestTimeout: waitLimit,
                connectTimeout: waitLimit
            )
            laneConnection = LaneConnection(
                options: configuration.sessionOptions("lane"),
                wake: wake,
                logger: .silent
            )
        }

        deinit {
            laneConnection.close()
        }

        /// - Parameters:
        ///   - script: called for each attempt with its ordinal, from 1. Commits if it throws nothing.
        ///   - connected: called once the connection is open, before the sender finds it.
        func send(
            connected: @escaping () -> Void = {},
            _ script: (_ attempt: Int) throws(PostgresError) -> Void
        ) -> ExactlyOnceSender.Reply<Int> {
            let sender = ExactlyOnceSender(
                laneConnection: laneConnection,
                delivery: OutcomeDelivery(mailboxes: MailboxRegistry(), metrics: LaneMetrics()),
                logger: .silent,
                sleep: { [unowned self] in sleep(until: $0, connected) }
            )
            var attempts = 0
            return sender.executeOnce(nil, requests) { _ throws(PostgresError) in
                events.append(.attempt)
                attempts += 1
                try script(attempts)
                return .committed(attempts, isUnreplicated: false)
            }
        }

        private func sleep(until deadline: ContinuousClock.Instant, _ connected: () -> Void) {
            if laneConnection.connection != nil {
                events.append(.pause)
                pausedUntil = deadline
            }
            _ = wake.sleep(orUntilReadable: -1, until: deadline)
            laneConnection.advance()
            if laneConnection.connection != nil { connected() }
        }
    }

    @Test(
        "waits after each refusal that follows a lost connection",
        arguments: [SQLState.lockNotAvailable, .deadlockDetected]
    )
    func refusedAfterLoss(state: SQLState) async throws {
        let database = try await TestDatabase.fresh()
        try await onThread {
            let scene = Scene(database.conninfo)
            let reply = scene.send { attempt throws(PostgresError) in
                switch attempt {
                case 1: throw PostgresError(.connectionLost, "scripted")
                case 2, 3: throw PostgresError(.server(state), "scripted")
                default: break
                }
            }
            guard case .value(4) = reply else {
                Issue.record("\(reply)")
                return
            }
            #expect(scene.events == [.attempt, .attempt, .pause, .attempt, .pause, .attempt])
        }
    }

    @Test("does not wait beyond the next deadline")
    func deadlineBeforePause() async throws {
        let database = try await TestDatabase.fresh()
        try await onThread {
            let scene = Scene(database.conninfo)
            let reply = scene.send { attempt throws(PostgresError) in
                guard attempt > 1 else { throw PostgresError(.connectionLost, "scripted") }
                scene.requests.deadline = Deadline(.now + .milliseconds(10))
                throw PostgresError(.server(.lockNotAvailable), "scripted")
            }
            guard case .allExpired = reply else {
                Issue.record("\(reply)")
                return
            }
            #expect(scene.pausedUntil == scene.requests.deadline.instant)
            #expect(scene.requests.failure == .unknown)
        }
    }

    @Test("is not sent if its deadline passes while the connection opens: nothing was counted")
    func deadlineWhileConnecting() async throws {
        let database = try await TestDatabase.fresh()
        try await onThread {
            let scene = Scene(database.conninfo)
            let reply = scene.send(connected: { scene.requests.deadline = Deadline(.now) }) { _ in }
            guard case .allExpired = reply else {
                Issue.record("\(reply)")
                return
            }
            #expect(scene.events == [])
            #expect(scene.requests.failure == .late)
        }
    }

    @Test("of an operator is executed, with a new receipt, if the database has deleted the lane's")
    func deletedReceipt() async throws {
        let database = try await TestDatabase.fresh()
        let engine = EngineHarness(database.conninfo, lanes: 1)
        try await engine.running {
            for plan in ["paid", "pro"] {
                // As a new process does when the lane was idle for a day.
                try await database.psql.execute("delete from headroom.lane_receipts")
                let outcome = try await engine.execute(ada, .setPlan(PlanChange(user: ada, plan: plan)))
                #expect(outcome.answer?.snapshot.plan.name == plan)
            }
        }
    }
}
