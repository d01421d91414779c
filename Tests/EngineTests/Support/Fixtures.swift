import Usage

@testable import Engine

extension Request {
    /// A request of a test without a database, identified by its slot.
    static func fixture(
        _ user: UserID,
        _ operation: EngineOperation,
        slot: UInt64 = 0,
        connection: Int = 0,
        deadline: ContinuousClock.Instant
    ) -> Request {
        Request(
            user: user,
            operation: operation,
            returnAddress: ReturnAddress(mailboxIndex: 0, connection: connection, slot: slot),
            deadline: Deadline(deadline)
        )
    }
}

extension Request {
    init(_ request: UnbatchedRequest) {
        self.init(
            user: request.user,
            operation: .unbatched(request.operation),
            returnAddress: request.returnAddress,
            deadline: request.deadline
        )
    }
}

extension BatchedRequest {
    static func fixture(
        _ user: UserID,
        _ operation: BatchedOperation,
        in parts: MessageParts? = nil,
        slot: UInt64 = 0,
        connection: Int = 0,
        deadline: ContinuousClock.Instant
    ) -> BatchedRequest {
        BatchedRequest(
            user: user,
            operation: operation,
            parts: parts,
            returnAddress: ReturnAddress(mailboxIndex: 0, connection: connection, slot: slot),
            deadline: Deadline(deadline)
        )
    }
}

extension Outcome {
    var answer: Answer? { if case .answer(let answer) = self { answer } else { nil } }
    var failure: EngineError? { if case .failure(let error) = self { error } else { nil } }
    var isAllowed: Bool { answer?.status == .allowed }
}
