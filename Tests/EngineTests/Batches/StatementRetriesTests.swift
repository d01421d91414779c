import Postgres
import Testing

@testable import Engine

@Suite("What follows a statement's failures")
struct StatementRetriesTests {
    private typealias Step = StatementRetries.Step

    private func steps(isChange: Bool, _ states: [SQLState?]) -> [Step] {
        var retries = StatementRetries(isChange: isChange)
        return states.map { state in
            retries.step(after: PostgresError(state.map { .server($0) } ?? .connectionLost, ""))
        }
    }

    @Test("A statement that was rolled back is sent again, but not for ever", arguments: [false, true])
    func rollbacks(isChange: Bool) {
        let steps = steps(isChange: isChange, Array(repeating: .deadlockDetected, count: 21))
        #expect(steps == Array(repeating: .sendAgain, count: 20) + [.reject])
    }

    @Test("After a loss a refused change is sent again: the lost transaction may hold its locks. A read is not")
    func refusalsAfterLoss() {
        let states: [SQLState?] = [.lockNotAvailable, nil, .lockNotAvailable]
        #expect(steps(isChange: true, states) == [.reject, .sendAgainAfterLoss, .sendAgain])
        #expect(steps(isChange: false, states) == [.reject, .sendAgainAfterLoss, .reject])
    }

    @Test("An outdated session is renewed once")
    func outdatedSession() {
        let states = Array(repeating: SQLState.featureNotSupported, count: 2)
        #expect(steps(isChange: true, states) == [.reconnect, .reject])
    }

    @Test("Another server or receipt is asked for, and a batch of an outdated map is given back")
    func others() {
        let states: [SQLState?] = [.readOnlySQLTransaction, StatementFailure.receiptUnknown, .outdatedBuckets]
        #expect(steps(isChange: true, states) == [.reconnect, .replaceReceipt, .reject])
    }
}
