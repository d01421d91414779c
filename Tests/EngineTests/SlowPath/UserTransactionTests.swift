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
    private let month = billingPeriod("2026-11")

    private func transaction(
        used: Int = 0,
        limit: Int? = 10,
        hasUsageRow: Bool = true,
        keys: [MessageKey: UsedKey] = [:],
        pastUsage: [BillingPeriod: PastUsage] = [:]
    ) -> UserTransaction {
        let snapshot = UsageSnapshot(
            plan: .paid,
            state: .active,
            period: month,
            used: used,
            limit: limit,
            startedAt: at("2026-11-01"),
            resetsAt: at("2026-12-01"),
            observedAt: noon
        )
        let locked = LockedUser(
            snapshot: snapshot,
            entitlement: "",
            usableUntil: at("2026-12-01"),
            held: 0,
            hasSubscription: true,
            hasSubscriber: true,
            hasUsageRow: hasUsageRow,
            generation: 7,
            isOutdated: false
        )
        return UserTransaction(user(1), locked, keys: keys, pastUsage: pastUsage)
    }

    private func key(
        _ verb: UsedKey.Verb,
        _ status: UsedKey.Status,
        _ messages: Int,
        in period: String = "2026-11",
        generation: Int64 = 7
    ) -> UsedKey {
        UsedKey(
            verb: verb,
            status: status,
            messages: messages,
            first: Allowances(period: Allowance(used: 3, held: 2, limit: 10)),
            createdAt: noon,
            expiresAt: verb == .reserve ? noon.advanced(bySeconds: 60) : nil,
            generation: generation,
            period: billingPeriod(period)
        )
    }

    @Test("allows what fits, request by request: of 4, 3 and 1 with 5 left, 4 and 1")
    func mixed() {
        var user = transaction(used: 5)
        let results = [4, 3, 1].map { user.decide(.consume($0)) }
        #expect(results.map(\.status) == [.allowed, .blocked(.exceedsRemaining), .allowed])
        #expect(results.map(\.answer?.snapshot.used) == [9, 9, 10])
        #expect(results.map(\.messagesCounted) == [4, 0, 1])
        #expect(results.map(\.answer?.crossed) == [.gentle, nil, .blocked])
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

    @Test("a key is good for one message: a repetition, another number, another verb, after a release")
    func repetitions() {
        var user = transaction(used: 3, keys: ["k": key(.consume, .counted, 2)])
        #expect(user.decide(.consume(2, key: "k")).isRepeated)
        #expect(user.decide(.consume(1, key: "k")).outcome == .failure(.keyConflict))
        #expect(user.decide(.reserve(2, key: "k", ttlSeconds: 60)).outcome == .failure(.keyConflict))
        #expect(user.decide(.commit(key: "k")).outcome == .failure(.keyConflict))
        #expect(!user.isChanged)
        let released = user.decide(.release("k"))
        #expect(released.answer?.released == 2 && released.answer?.snapshot.used == 1)
        #expect(user.released == 2 && user.changedKeys == ["k"])
        #expect(user.decide(.consume(2, key: "k")).outcome == .failure(.keyReleased))
        #expect(user.decide(.release("k")).isRepeated)
    }

    @Test("a commit of fewer messages than are held counts and repeats those, and its release gives those back")
    func actualAmount() {
        var user = transaction(keys: ["k": key(.reserve, .held, 5), "none": key(.reserve, .held, 2)])
        #expect(user.decide(.commit(6, key: "k")).outcome == .failure(.commitTooLarge))
        #expect(!user.isChanged && user.changedKeys.isEmpty)
        let committed = user.decide(.commit(3, key: "k"))
        #expect(committed.status == .allowed && committed.messagesCounted == 3 && committed.answer?.snapshot.used == 3)
        #expect(user.decide(.commit(3, key: "k")).isRepeated)
        for messages in [nil, 2, 5] {
            #expect(user.decide(.commit(messages, key: "k")).outcome == .failure(.keyConflict))
        }
        #expect(user.decide(.reserve(5, key: "k", ttlSeconds: 60)).isRepeated, "what was reserved")
        let released = user.decide(.release("k"))
        #expect(released.answer?.released == 3 && released.answer?.snapshot.used == 0 && user.released == 3)
        #expect(user.decide(.commit(0, key: "none")).messagesCounted == 0)
        #expect(user.decide(.release("none")).answer?.released == 0)
        #expect(user.decide(.release("none")).isRepeated)
    }

    @Test("a release after a reset takes nothing off the new count")
    func releaseAfterReset() {
        var user = transaction(used: 3, keys: ["k": key(.consume, .counted, 2, generation: 6)])
        let released = user.decide(.release("k"))
        #expect(released.answer?.released == 0 && released.answer?.snapshot.used == 3)
        #expect(!user.isChanged)
    }

    @Test("a hold of an earlier period is committed there; without its row it has ended")
    func commitInPastPeriod() {
        let past = PastUsage(used: 8, held: 2, heldInRow: 5, limit: 10, generation: 4, resetsAt: at("2026-11-01"))
        let october = billingPeriod("2026-10")
        let keys: [MessageKey: UsedKey] = ["k": key(.reserve, .held, 2, in: "2026-10", generation: 4)]
        var user = transaction(used: 1, keys: keys, pastUsage: [october: past])
        let committed = user.decide(.commit(key: "k"))
        #expect(committed.status == .allowed && !committed.isRepeated && committed.messagesCounted == 2)
        let snapshot = committed.answer?.snapshot
        #expect(snapshot?.period == october && snapshot?.used == 10 && snapshot?.held == 0)
        #expect(user.pastUsage[october]?.isChanged == true && user.pastUsage[october]?.heldInRow == 0)
        #expect(user.keys["k"]?.generation == 4 && user.changedKeys == ["k"])
        #expect(!user.isChanged && user.snapshot.used == 1)
        var withoutRow = transaction(keys: keys)
        #expect(withoutRow.decide(.commit(key: "k")).outcome == .failure(.holdExpired))
        #expect(withoutRow.changedKeys.isEmpty)
    }

    @Test("an expired hold is neither committed nor held again, and its release gives nothing back")
    func expired() {
        var old = key(.reserve, .held, 2)
        old.expiresAt = noon
        var user = transaction(keys: ["k": old])
        #expect(user.decide(.commit(key: "k")).outcome == .failure(.holdExpired))
        #expect(user.decide(.reserve(2, key: "k", ttlSeconds: 60)).outcome == .failure(.holdExpired))
        let released = user.decide(.release("k"))
        #expect(released.answer?.released == 0)
        #expect(!user.isChanged)
    }

    @Test("a commit after an operator has set the held messages to 0 counts, and holds less than nothing never")
    func heldLowered() {
        var user = transaction(keys: ["k": key(.reserve, .held, 2)])
        let committed = user.decide(.commit(key: "k"))
        let snapshot = committed.answer?.snapshot
        #expect(committed.status == .allowed && snapshot?.used == 2 && snapshot?.held == 0)
    }

    @Test("the results are the same after they were stored in the receipt")
    func receipt() throws {
        var user = transaction(used: 1, keys: ["old": key(.consume, .counted, 2, in: "2026-10")])
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
