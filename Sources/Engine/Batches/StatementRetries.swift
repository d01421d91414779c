import Postgres

/// Decides what follows the failures of a statement that is sent until its outcome is known. It has no I/O:
/// `ExactlyOnceSender` and `Forgetting` run it.
struct StatementRetries {
    enum Step {
        /// The connection is lost, and the statement may have been executed. It is sent again over the next session.
        case sendAgainAfterLoss
        /// The statement had no effect. It is sent again over the next session.
        case reconnect
        /// The database has no receipt of this lane. The statement is sent again with a new one.
        case replaceReceipt
        /// The statement had no effect. It is sent again over the same session.
        case sendAgain
        /// The statement had no effect and never will have.
        case reject
    }

    /// The most times that a statement is sent again after a rollback. Usually another session was first, which happens
    /// once or twice, but a trigger of an application may raise the same errors for a user always.
    private static let rollbacksMaximum = 20

    /// Whether the statement changes something, so that a lost one may hold locks that later ones need.
    private let isChange: Bool
    /// Whether a connection was lost while the statement was under way.
    private(set) var hasLost = false
    private var rollbacks = 0
    private var hasRenewedSession = false

    init(isChange: Bool) {
        self.isChange = isChange
    }

    mutating func step(after error: PostgresError) -> Step {
        let failure = StatementFailure(of: error)
        switch failure {
        case .unknown:
            hasLost = true
            return .sendAgainAfterLoss
        case .unavailableServer:
            return .reconnect
        case .outdatedSession where !hasRenewedSession:
            hasRenewedSession = true
            return .reconnect
        case .receiptLost:
            return .replaceReceipt
        // A refusal after a loss most likely means that the lost transaction still holds the receipt. Until that
        // transaction ends, each attempt fails.
        case .rolledBack, .refused, .outdatedSession:
            if isChange, hasLost { return .sendAgain }
            guard failure == .rolledBack, rollbacks < StatementRetries.rollbacksMaximum else {
                return .reject
            }
            rollbacks += 1
            return .sendAgain
        case .outdatedBuckets:
            return .reject
        }
    }
}
