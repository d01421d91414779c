import Engine
import NIOCore
import ServiceCore
import Usage

/// The way of one event loop's requests to the engine.
///
/// @unchecked Sendable: only the event loop uses it.
final class EngineRequests: @unchecked Sendable {
    private let eventLoop: any EventLoop
    private let engine: BatchingEngine
    private let mailbox: ConnectionMailbox
    private var staged: [[Request]]
    /// The routes are read once for all requests that are staged together, so that those of one user go to one lane.
    private var routesReader: LaneRoutesReader
    private var submissionIsScheduled = false
    private var stageDeadline: Deadline?
    private var stagedAtMicroseconds: UInt32 = 0

    /// - Parameter mailbox: receives the outcomes.
    init(_ engine: BatchingEngine, _ mailbox: ConnectionMailbox, _ eventLoop: any EventLoop) {
        self.engine = engine
        self.mailbox = mailbox
        self.eventLoop = eventLoop
        routesReader = engine.makeRoutesReader()
        staged = Array(repeating: [], count: engine.configuration.lanes)
    }

    /// Stages a request until the end of this iteration of the event loop.
    func stage(_ user: UserID, _ operation: EngineOperation, connection: Int, slot: UInt64) {
        let deadline = stageDeadline ?? beginStage()
        staged[routesReader.routes.lane(of: user)].append(
            Request(
                user: user,
                operation: operation,
                returnAddress: ReturnAddress(
                    mailboxIndex: mailbox.index,
                    connection: connection,
                    slot: slot,
                    receivedAtMicroseconds: stagedAtMicroseconds
                ),
                deadline: deadline
            )
        )
        guard !submissionIsScheduled else { return }
        submissionIsScheduled = true
        // The task runs after all reads of this iteration.
        eventLoop.execute { self.submitStaged() }
    }

    /// Reads the clocks once per iteration, which is far shorter than any deadline.
    private func beginStage() -> Deadline {
        routesReader.refresh()
        let deadline = Deadline(.now + engine.configuration.requestTimeout)
        stageDeadline = deadline
        stagedAtMicroseconds = LoopMetrics.microseconds(.now())
        return deadline
    }

    private func submitStaged() {
        submissionIsScheduled = false
        stageDeadline = nil
        for lane in staged.indices where !staged[lane].isEmpty {
            let refusal = engine.enqueue(staged[lane], lane: lane)
            // The stage is emptied before the refusals are delivered, because their connections may stage more requests
            // then.
            staged[lane].removeAll(keepingCapacity: true)
            guard let (refused, error) = refusal else { continue }
            mailbox.deliverOnLoop(refused.map { Completion(returnAddress: $0.returnAddress, outcome: .failure(error)) })
        }
    }

    func read(_ query: ReportQuery, connection: Int, slot: UInt64) {
        let request = ReportRequest(
            query: query,
            returnAddress: ReturnAddress(mailboxIndex: mailbox.index, connection: connection, slot: slot),
            deadline: .now + engine.configuration.reportTimeout
        )
        guard let refusal = engine.reports.enqueue(request) else { return }
        // The outcome is queued, because the connection is decoding requests now.
        mailbox.deliver([Completion(returnAddress: request.returnAddress, outcome: .failure(refusal))])
    }

    func subscribe(_ users: [UserID], connection: Int, slot: UInt64) {
        engine.changes.subscribe(
            SubscribeRequest(
                users: users,
                returnAddress: ReturnAddress(mailboxIndex: mailbox.index, connection: connection, slot: slot),
                deadline: .now + engine.configuration.requestTimeout
            )
        )
    }

    func unsubscribe(_ users: [UserID], connection: Int) {
        engine.changes.unsubscribe(users, ChangeSubscriber(mailboxIndex: mailbox.index, connection: connection))
    }

    func unsubscribeAll(connection: Int) {
        engine.changes.disconnect(ChangeSubscriber(mailboxIndex: mailbox.index, connection: connection))
    }
}
