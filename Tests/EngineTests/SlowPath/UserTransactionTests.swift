import TestSupport
import Testing
import Usage

@testable import Engine

extension SlowPathResult {
    fileprivate var status: Answer.Status? { answer?.status }
    fileprivate var isRepeated: Bool { answer?.isRepeated == true }
}

@Suite("One user's requests on the slow path")
struct UserTransactionTests {
    private let noon = at("2026-11-10T12:00:00Z")

    private func transaction(
        used: Int = 0,
        hasUsageRow: Bool = true,
        keys: [MessageKey: UsedKey] = [:]
    ) -> UserTransaction {
        let locked = LockedUser(
            snapshot: .monthly(used: used, limit: 10),
            entitlement: "",
            usableUntil: at("2026-12-01"),
            held: 0,
            hasSubscription: true,
            hasSubscriber: true,
            hasUsageRow: hasUsageRow,
            generation: 7,
            isOutdated: false
        )
        return UserTransaction(user(1), locked, keys: keys, pastUsage: [:])
    }

    /// Of two messages.
    private func key(_ verb: UsedKey.Verb, _ status: UsedKey.Status, in period: String = "2026-11") -> UsedKey {
        UsedKey(
            verb: verb,
            status: status,
            messages: 2,
            first: Allowances(period: Allowance(used: 3, held: 2, limit: 10)),
            createdAt: noon,
            expiresAt: verb == .reserve ? noon.advanced(bySeconds: 60) : nil,
            generation: 7,
            period: billingPeriod(period)
        )
    }

    @Test("a held message is committed in the same batch, and its key is inserted once as counted")
    func holdAndCommit() {
        var user = transaction(hasUsageRow: false)
        let results = [
            user.decide(.reserve(2, key: "k", ttlSeconds: 60)), user.decide(.commit(key: "k")),
            user.decide(.commit(2, key: "k")),
        ]
        #expect(results.map(\.status) == [.held, .allowed, .allowed])
        #expect(results.map(\.isRepeated) == [false, false, true])
        #expect(results.map(\.answer?.snapshot.used) == [0, 2, 2])
        #expect(results.map(\.answer?.snapshot.held) == [2, 0, 0])
        #expect(user.newKeys == ["k"] && user.changedKeys.isEmpty)
        #expect(user.keys["k"]?.status == .counted)
        #expect(user.isChanged && user.countsOrHolds)
        #expect(user.holdsEndAt == noon.advanced(bySeconds: 60))
    }

    @Test("a commit after an operator has set the held messages to 0 counts, and holds less than nothing never")
    func heldLowered() {
        var user = transaction(keys: ["k": key(.reserve, .held)])
        let committed = user.decide(.commit(key: "k"))
        let snapshot = committed.answer?.snapshot
        #expect(committed.status == .allowed && snapshot?.used == 2 && snapshot?.held == 0)
    }

    @Test("the results are the same after they were stored in the receipt")
    func receipt() throws {
        var user = transaction(used: 1, keys: ["old": key(.consume, .counted, in: "2026-10")])
        let operations: [BatchedOperation] = [
            .consume(1), .consume(20), .consume(1, key: "old"), .consume(2, key: "old"), .usage, .check(1),
            .reserve(1, key: "new", ttlSeconds: 60), .release("new"), .commit(key: "none"),
            .reserve(2, key: "held", ttlSeconds: 60), .commit(3, key: "held"), .commit(1, key: "held"),
        ]
        let results = operations.map { user.decide($0) }
        let text = ReceiptAnswers.text(results)
        let users = operations.map { _ in user.user }
        let read = ReceiptAnswers.results(text, of: users) { $0 == Plan.paid.name ? .paid : nil }
        #expect(read == results)
        #expect(ReceiptAnswers.results(text + "x", of: users) { _ in .paid } == nil)
        #expect(ReceiptAnswers.results(text, of: users) { _ in nil } == nil)
    }
}
