import TestSupport
import Testing
import Usage

@testable import Engine

@Suite("A batch")
struct BatchTests {
    private let start = ContinuousClock.now

    private func request(
        _ user: UserID,
        _ operation: BatchedOperation,
        in parts: MessageParts? = nil,
        slot: UInt64,
        afterSeconds: Int = 60
    ) -> BatchedRequest {
        .fixture(user, operation, in: parts, slot: slot, deadline: start + .seconds(afterSeconds))
    }

    @Test("sorts its users, and keeps each user's requests in the order of arrival")
    func grouping() {
        let batch = Batch([
            request(user(2), .consume(1), slot: 1),
            request(user(1), .consume(4), slot: 2),
            request(user(2), .check(9), slot: 3),
            request(user(0), .usage, slot: 4),
            request(user(1), .consume(3), slot: 5),
            request(user(2), .consume(2), slot: 6),
        ])
        #expect(batch.requests.map(\.returnAddress.slot) == [4, 2, 5, 1, 3, 6])
        #expect(batch.groups.map(\.user) == [user(0), user(1), user(2)])
        #expect(batch.groups.map(\.range) == [0..<1, 1..<3, 3..<6])
        #expect(batch.groups.map(\.messages) == [0, 7, 3])
        #expect(batch.groups.map(\.consumes) == [0, 2, 2])
    }

    @Test("puts off the second of two keys, and what follows it; more keys stay together")
    func keys() {
        let batch = Batch([
            request(user(1), .consume(1), slot: 1),
            request(user(1), .consume(2, key: "a"), slot: 2),
            request(user(2), .consume(1, key: "c"), slot: 3),
            request(user(1), .usage, slot: 4),
            request(user(1), .commit(key: "b"), slot: 5),
            request(user(2), .consume(1, key: "d"), slot: 6),
            request(user(1), .consume(4), slot: 7),
            request(user(2), .release("e"), slot: 8),
            request(user(3), .consume(1, key: "f"), slot: 9),
        ])
        #expect(batch.putOff.map(\.returnAddress.slot) == [5, 7])
        let groups = batch.groups.map { group in batch.requests[group.range].map(\.returnAddress.slot) }
        #expect(groups == [[1, 2, 4], [3, 6, 8], [9]])
        #expect(batch.groups.map(\.messages) == [3, 2, 1])
        #expect(batch.groups.map(\.needsSlowPath) == [false, true, false])
        #expect(batch.groups[0].hasUsage && batch.groups[0].keyed?.key == "a")
    }

    @Test("asks for the counts of parts on the slow path beside messages, which count in others")
    func parts() throws {
        let parts = try #require(MessageParts(model: "gpt-5"))
        let batch = Batch([
            request(user(1), .check(1), in: parts, slot: 1),
            request(user(1), .consume(1), slot: 2),
            request(user(2), .usage, in: parts, slot: 3),
            request(user(3), .consume(1), in: parts, slot: 4),
            request(user(3), .check(1), slot: 5),
        ])
        #expect(batch.groups.map(\.needsSlowPath) == [true, false, false])
    }

    @Test("without requests has no groups")
    func empty() {
        let batch = Batch([])
        #expect(batch.groups.isEmpty)
        #expect(batch.nextDeadline(batch.groups) == nil)
    }

    @Test("finds that a user counts nothing only if none of the CONSUME requests fits")
    func deniedThroughout() {
        let batch = Batch([
            request(user(1), .consume(3), slot: 1), request(user(1), .usage, slot: 2),
            request(user(1), .consume(2), slot: 3), request(user(2), .check(1), slot: 4),
        ])
        func refusals(_ group: Int, used: Int) -> [DenialReason]? {
            batch.refusals(batch.groups[group], at: .monthly(used: used, limit: 10), nil)
        }
        #expect(refusals(0, used: 9) == [.exceedsRemaining, .exceedsRemaining])
        #expect(refusals(0, used: 8) == nil)
        #expect(refusals(1, used: 0) == [], "nothing to count")
    }

    @Test("fails each request once")
    func failing() {
        var batch = Batch([
            request(user(1), .consume(1), slot: 1, afterSeconds: 1),
            request(user(1), .consume(1), slot: 2, afterSeconds: 9),
            request(user(2), .consume(1), slot: 3, afterSeconds: 1),
        ])
        var completions: [Completion] = []
        batch.expire(batch.groups.prefix(1), at: Deadline(start + .seconds(5)), .unknown, into: &completions)
        batch.expire(batch.groups.prefix(1), at: Deadline(start + .seconds(5)), .unknown, into: &completions)
        #expect(completions.map(\.returnAddress.slot) == [1], "neither the one with time left nor another group's")
        #expect(completions.map(\.outcome) == [.failure(.unknown)])
        batch.fail(batch.groups, .busy, into: &completions)
        #expect(completions.map(\.returnAddress.slot) == [1, 2, 3])
        #expect(completions.last?.outcome == .failure(.busy))
    }

    @Test("returns the next deadline among the requests that have not expired")
    func deadlines() {
        var batch = Batch([
            request(user(1), .consume(1), slot: 1, afterSeconds: 3),
            request(user(2), .consume(1), slot: 2, afterSeconds: 2),
            request(user(3), .consume(1), slot: 3, afterSeconds: 1),
        ])
        #expect(batch.nextDeadline(batch.groups) == Deadline(start + .seconds(1)))
        #expect(batch.nextDeadline(batch.groups.prefix(2)) == Deadline(start + .seconds(2)))
        var completions: [Completion] = []
        batch.expire(batch.groups, at: Deadline(start + .seconds(2)), .unknown, into: &completions)
        #expect(batch.nextDeadline(batch.groups) == Deadline(start + .seconds(3)))
        batch.expire(batch.groups, at: Deadline(start + .seconds(3)), .unknown, into: &completions)
        #expect(batch.nextDeadline(batch.groups) == nil)
    }

    @Test("counts a request that has expired, without answering it again")
    func answeringExpired() {
        var batch = Batch([
            request(user(1), .consume(2), slot: 1, afterSeconds: 1), request(user(1), .consume(3), slot: 2),
        ])
        var completions: [Completion] = []
        batch.expire(batch.groups, at: Deadline(start + .seconds(1)), .unknown, into: &completions)
        var snapshot = UsageSnapshot.monthly(used: 0, limit: 10)
        batch.answer(batch.groups[0], from: &snapshot, into: &completions)
        #expect(completions.map(\.returnAddress.slot) == [1, 2])
        #expect(completions.last?.outcome.answer?.snapshot.used == 5)
        #expect(snapshot.used == 5)
    }

    @Test("answers as if its requests were executed one after the other", arguments: 1...40)
    func serialEquivalence(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let users = (0..<5).map { user($0) }
        let snapshots = Dictionary(
            uniqueKeysWithValues: users.map { user in
                let limit = generator.chance(20) ? nil : Int.random(in: 0...30, using: &generator)
                return (user, UsageSnapshot.monthly(used: Int.random(in: 0...30, using: &generator), limit: limit))
            }
        )
        let arrived = (0..<Int.random(in: 1...60, using: &generator)).map { slot in
            let messages = Int.random(in: 1...6, using: &generator)
            let operation = generator.element(of: [
                BatchedOperation.consume(1), .consume(messages), .consume(messages), .check(messages), .usage,
            ])
            return request(generator.element(of: users), operation, slot: UInt64(slot))
        }
        var expected: [UInt64: Answer] = [:]
        var serial = snapshots
        for request in arrived {
            let user = request.user
            expected[request.returnAddress.slot] =
                switch request.operation {
                case .consume(let messages, _): serial[user]?.consume(messages, of: user)
                case .check(let messages): serial[user]?.check(messages, of: user)
                default: serial[user]?.usage(of: user)
                }
        }
        let batch = Batch(arrived)
        var completions: [Completion] = []
        for group in batch.groups {
            guard var snapshot = snapshots[group.user] else { continue }
            batch.answer(group, from: &snapshot, into: &completions)
            #expect(snapshot == serial[group.user], "seed \(seed)")
        }
        #expect(completions.count == arrived.count, "seed \(seed)")
        for completion in completions {
            #expect(completion.outcome.answer == expected[completion.returnAddress.slot], "seed \(seed)")
        }
    }
}
