import TestSupport
import Testing
import Usage

@testable import Engine

@Suite("Messages with a model and a member")
struct PartTransactionTests {
    private static let large = PlanLimit(
        .model,
        "large*",
        label: "Large",
        allowance: 20,
        window: Plan.Window(messages: 4, seconds: 10_800),
        weight: 5,
        fallback: ModelName("small")
    )
    private let plan = Plan(
        name: "team",
        label: "Team",
        cycle: .monthly,
        allowance: 100,
        limits: [large, PlanLimit(.model, "small", allowance: 30), PlanLimit(.member, "*", allowance: 40)]
    )
    private let noon = at("2026-11-10T12:00:00Z")
    private let member = user(9)

    private func parts(_ model: String?, member: UserID? = nil) throws -> MessageParts {
        try #require(MessageParts(model: model.flatMap(ModelName.init), member: member))
    }

    private func key(_ kind: PlanLimit.Kind, _ name: String) -> PartKey {
        PartKey(period: billingPeriod("2026-11"), id: kind == .model ? .model(name) : .member(member))
    }

    private func transaction(
        used: Int = 0,
        keys: [MessageKey: UsedKey] = [:],
        _ stored: [PartKey: StoredPart] = [:]
    ) -> UserTransaction {
        var snapshot = UsageSnapshot.monthly(used: used, limit: 100)
        snapshot.plan = plan
        let locked = LockedUser(
            snapshot: snapshot,
            entitlement: "",
            usableUntil: at("2026-12-01"),
            held: 0,
            hasSubscription: true,
            hasSubscriber: true,
            hasUsageRow: true,
            generation: 7,
            isOutdated: false
        )
        var user = UserTransaction(user(1), locked, keys: keys, pastUsage: [:])
        let rows = [key(.model, "large*"), key(.model, "small"), key(.member, "\(member)")]
        user.parts = Dictionary(
            uniqueKeysWithValues: rows.map { ($0, StoredPart(counter: PartCounter(), generation: 3)) }
        )
        .merging(stored) { $1 }
        return user
    }

    @Test("count in each allowance by the model's weight, and a hold gives back what was not committed in all of them")
    func holds() throws {
        var user = transaction()
        let both = try parts("large-2", member: member)
        let held = user.decide(.reserve(3, key: "k", ttlSeconds: 60), in: both)
        #expect(held.answer?.status == .held)
        #expect(user.snapshot.held == 15 && user.snapshot.parts.isEmpty)
        #expect(user.parts[key(.model, "large*")]?.counter.held == 3)
        #expect(user.parts[key(.model, "large*")]?.counter.windowHeld == 3)
        #expect(user.parts[key(.model, "large*")]?.holdsEndAt == noon.advanced(bySeconds: 60))
        #expect(user.parts[key(.member, "\(member)")]?.counter.held == 15)
        #expect(user.parts[key(.model, "small")]?.isChanged == false)

        let committed = user.decide(.commit(1, key: "k"))
        #expect(committed.messagesCounted == 5)
        #expect(user.snapshot.used == 5 && user.snapshot.held == 0)
        #expect(user.parts[key(.model, "large*")]?.counter.used == 1)
        #expect(user.parts[key(.model, "large*")]?.counter.windowUsed == 1)
        #expect(user.parts[key(.member, "\(member)")]?.counter.used == 5)
        #expect(user.parts[key(.member, "\(member)")]?.counter.held == 0)

        let released = user.decide(.release("k"))
        #expect(released.answer?.released == 1, "in messages of the request")
        #expect(user.snapshot.used == 0)
        #expect(user.parts.values.allSatisfy { $0.counter.used == 0 && $0.counter.windowUsed == 0 })
    }

    @Test("are refused by the first allowance into which they do not fit, and count in none")
    func refusal() throws {
        var full = PartCounter()
        full.used = 20
        var user = transaction([key(.model, "large*"): StoredPart(counter: full, generation: 3)])
        let refused = user.decide(.consume(1), in: try parts("large-1", member: member))
        #expect(refused.answer?.status == .blocked(.modelLimitReached))
        #expect(refused.answer?.fallback?.model.text == "small")
        #expect(!user.isChanged && user.parts.values.allSatisfy { !$0.isChanged })
        #expect(user.decide(.consume(1), in: try parts("small", member: member)).answer?.status == .allowed)
        #expect(user.snapshot.used == 1)
    }

    @Test("a repeated key has the numbers of its first answer, and another model or member is a conflict")
    func repetition() throws {
        var user = transaction()
        let both = try parts("large-2", member: member)
        let first = user.decide(.consume(1, key: "k"), in: both)
        _ = user.decide(.consume(2), in: both)
        let again = user.decide(.consume(1, key: "k"), in: both)
        #expect(again.answer?.isRepeated == true)
        #expect(again.answer?.snapshot.otherAllowancesShown == first.answer?.snapshot.otherAllowancesShown)
        #expect(again.answer?.snapshot.used == 5)
        for other in [try parts("large-1", member: member), try parts("large-2"), try parts(nil, member: member)] {
            #expect(user.decide(.consume(1, key: "k"), in: other).outcome == .failure(.keyConflict))
        }
        #expect(user.decide(.consume(1, key: "k")).outcome == .failure(.keyConflict))
    }

    @Test("a release after a reset of the model's count lowers the user's and the member's only")
    func releaseAfterReset() throws {
        var first = transaction()
        _ = first.decide(.consume(2, key: "k"), in: try parts("large-2", member: member))
        var reset = try #require(first.parts[key(.model, "large*")])
        reset = StoredPart(counter: PartCounter(), generation: 4)
        reset.counter.used = 1
        var stored = first.parts
        stored[key(.model, "large*")] = reset
        var user = transaction(used: 15, keys: first.keys, stored)
        #expect(user.decide(.release("k")).answer?.released == 2)
        #expect(user.snapshot.used == 5)
        #expect(user.parts[key(.model, "large*")]?.counter.used == 1)
        #expect(user.parts[key(.member, "\(member)")]?.counter.used == 0)
    }

    @Test("the column of keys has what is needed to give the messages back")
    func column() throws {
        var user = transaction()
        _ = user.decide(.reserve(1, key: "k", ttlSeconds: 60), in: try parts("large-2", member: member))
        _ = user.decide(.commit(key: "k"))
        let parts = try #require(user.keys["k"]?.parts)
        #expect(try KeyParts(parts.jsonText) == parts)
        #expect(parts.weight == 5 && parts.model?.counter == "large*" && parts.model?.generation == 3)
        #expect(parts.model?.window == noon.microsecondsSince1970 && parts.member?.window == nil)
        #expect(parts.member?.first?.held == 5 && parts.member?.commit?.used == 5)
    }

    @Test("the results are the same after they were stored in the receipt")
    func receipt() throws {
        var full = PartCounter()
        full.used = 20
        var user = transaction([key(.model, "large*"): StoredPart(counter: full, generation: 3)])
        let named = try parts("large-2", member: member)
        let results = [
            user.decide(.consume(1), in: named), user.decide(.consume(2), in: try parts("small")),
            user.decide(.usage, in: try parts("unlisted", member: member)),
        ]
        let text = ReceiptAnswers.text(results)
        let read = ReceiptAnswers.results(text, of: results.map { _ in TestSupport.user(1) }) { _ in plan }
        #expect(read == results)
    }

    @Test("the fast path sends the sums of a user's requests by the plan's weights")
    func charges() throws {
        let deadline = ContinuousClock.now
        let requests = [
            BatchedRequest.fixture(user(1), .consume(2), in: try parts("large-1", member: member), deadline: deadline),
            .fixture(user(1), .consume(1), deadline: deadline),
            .fixture(user(1), .consume(1), in: try parts("large-2"), deadline: deadline),
            .fixture(user(1), .check(7), deadline: deadline),
            .fixture(user(1), .consume(1), in: try parts("unlisted", member: member), deadline: deadline),
        ]
        let batch = Batch(requests)
        var group = batch.groups[0]
        var charges: [PartCharge] = []
        group.charge(to: plan, batch.requests, as: 0, into: &charges)
        #expect(batch.groups[0].hasParts && !group.needsSlowPath)
        // The sums are 2 and 1 of the large model, each taking five, 1 without a model, and 1 of one without a limit.
        #expect(group.messages == 17)
        let sums: [String: Int] = Dictionary(uniqueKeysWithValues: charges.map { ($0.id.name, $0.messages) })
        #expect(sums == ["large*": 3, "\(member)": 11])
    }
}
