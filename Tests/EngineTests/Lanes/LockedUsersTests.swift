import TestSupport
import Testing
import Usage

@testable import Engine

@Suite("Requests of a user whose row is locked")
struct LockedUsersTests {
    private let start = ContinuousClock.now
    /// Intervals begin with 50 ms and are 250 ms at most; a user is forgotten after 10 s.
    private let timeout = Duration.seconds(2)

    private func request(
        _ user: UserID,
        _ slot: UInt64,
        _ operation: EngineOperation = .consume(1),
        afterSeconds: Int = 60
    ) -> Request {
        .fixture(user, operation, slot: slot, deadline: start + .seconds(afterSeconds))
    }

    private func batch(_ requests: Request...) -> LaneQueue.Work { .batch(requests.compactMap(BatchedRequest.init)) }

    private func unbatched(_ request: Request) -> LaneQueue.Work? { UnbatchedRequest(request).map { .unbatched($0) } }

    private func at(_ milliseconds: Int) -> ContinuousClock.Instant { start + .milliseconds(milliseconds) }

    /// A queue whose lane has found ada locked, with this request.
    private func queue(_ first: Request) -> LaneQueue {
        var queue = LaneQueue(capacity: 100, requestTimeout: timeout)
        queue.addLocked([first], .busy, at: start)
        return queue
    }

    @Test("wait, and those of others are executed without them")
    func others() {
        var queue = queue(request(ada, 1))
        _ = queue.enqueue([request(ada, 2), request(ben, 3), request(ada, 4, .resetUsage(nil)), request(ben, 5)])
        #expect(queue.take(atMost: 10, at: start) == batch(request(ben, 3)))
        #expect(queue.take(atMost: 10, at: start) == batch(request(ben, 5)))
        #expect(queue.take(atMost: 10, at: start) == nil)
        #expect(queue.count == 0 && queue.lockedCount == 3)
        #expect(queue.enqueue([request(ben, 6)]).action == .wakeLane)
    }

    @Test("are executed apart and in their order once the row is free, and are put back if it is not")
    func order() {
        var queue = queue(request(ada, 1))
        let reset = request(ada, 3, .resetUsage(nil))
        _ = queue.enqueue([request(ada, 2), reset, request(ada, 4)])
        #expect(queue.take(atMost: 10, at: start) == nil)
        #expect(queue.nextLook == at(50))
        #expect(queue.take(atMost: 10, at: at(50)) == .look([ada]))
        queue.note([ada], stillLocked: [], at: at(50))
        #expect(queue.take(atMost: 10, at: at(50)) == .apart(batch(request(ada, 1), request(ada, 2))))
        queue.addLocked([request(ada, 1), request(ada, 2)], .busy, at: at(60))
        #expect(queue.take(atMost: 10, at: at(60)) == nil, "locked again")
        #expect(queue.nextLook == at(160), "the interval doubles")
        #expect(queue.take(atMost: 10, at: at(160)) == .look([ada]))
        queue.note([ada], stillLocked: [], at: at(160))
        #expect(queue.take(atMost: 1, at: at(160)) == .apart(batch(request(ada, 1))))
        #expect(queue.take(atMost: 10, at: at(160)) == .apart(batch(request(ada, 2))))
        #expect(queue.take(atMost: 10, at: at(160)) == unbatched(reset).map { .apart($0) })
        #expect(queue.take(atMost: 10, at: at(160)) == .apart(batch(request(ada, 4))))
        #expect(queue.take(atMost: 10, at: at(160)) == nil)
    }

    @Test("are looked at in intervals that double up to a limit")
    func intervals() throws {
        var queue = queue(request(ada, 1))
        var looks: [Duration] = []
        for _ in 0..<5 {
            let now = try #require(queue.nextLook)
            #expect(queue.take(atMost: 10, at: now - .milliseconds(1)) == nil)
            #expect(queue.take(atMost: 10, at: now) == .look([ada]))
            queue.note([ada], stillLocked: [ada], at: now)
            looks.append(now - start)
        }
        #expect(looks == [50, 150, 350, 600, 850].map { .milliseconds($0) })
    }

    @Test("that only read are executed with those of others, but do not overtake the user's own")
    func reads() {
        var queue = LaneQueue(capacity: 100, requestTimeout: timeout)
        queue.addLocked([request(ada, 1)], .busy, at: start)
        _ = queue.enqueue([request(ada, 2, .usage)])
        #expect(queue.take(atMost: 10, at: start) == nil)
        #expect(queue.expireLocked(at: Deadline(start + .seconds(61))).count == 2)
        let (check, history) = (request(ada, 3, .check(1)), request(ada, 4, .history(2)))
        _ = queue.enqueue([check, history, request(ada, 5), request(ada, 6, .usage)])
        #expect(queue.take(atMost: 10, at: start) == batch(check))
        #expect(queue.take(atMost: 10, at: start) == unbatched(history))
        #expect(queue.take(atMost: 10, at: start) == nil)
        #expect(queue.lockedCount == 2)
    }

    @Test("take turns with those of others")
    func turns() {
        var queue = queue(request(ada, 1))
        queue.note([ada], stillLocked: [], at: start)
        _ = queue.enqueue((2...4).map { request(ben, $0) } + [request(ada, 5)])
        #expect(queue.take(atMost: 1, at: start) == .apart(batch(request(ada, 1))))
        #expect(queue.take(atMost: 1, at: start) == batch(request(ben, 2)))
        #expect(queue.take(atMost: 1, at: start) == batch(request(ben, 3)))
        #expect(queue.take(atMost: 2, at: start) == batch(request(ben, 4)))
        #expect(queue.take(atMost: 1, at: start) == .apart(batch(request(ada, 5))))
    }

    @Test("are executed with those of others again, when the row was free for a while")
    func forgotten() {
        var queue = queue(request(ada, 1))
        queue.note([ada], stillLocked: [], at: start)
        #expect(queue.take(atMost: 10, at: start) == .apart(batch(request(ada, 1))))
        _ = queue.enqueue([request(ada, 2)])
        #expect(queue.take(atMost: 10, at: at(9_999)) == .apart(batch(request(ada, 2))))
        #expect(queue.nextLook == at(10_000))
        #expect(queue.take(atMost: 10, at: at(10_000)) == nil)
        _ = queue.enqueue([request(ada, 3), request(ben, 4)])
        #expect(queue.take(atMost: 10, at: at(10_000)) == batch(request(ada, 3), request(ben, 4)))
    }

    @Test("are answered at their deadlines, also while the lane closes, which waits for them")
    func deadlines() {
        var queue = queue(request(ada, 1, afterSeconds: 1))
        _ = queue.enqueue([request(ada, 2, afterSeconds: 2)])
        #expect(queue.take(atMost: 10, at: start) == nil)
        #expect(queue.nextDeadline == Deadline(start + .seconds(1)))
        _ = queue.close()
        #expect(queue.expireLocked(at: Deadline(start + .seconds(1))).map(\.completion.outcome) == [.failure(.busy)])
        var isFinished = queue.finishIfDrained()
        #expect(!isFinished)
        #expect(queue.expire(at: Deadline(start + .seconds(2))).isEmpty)
        #expect(queue.expireLocked(at: Deadline(start + .seconds(2))).map(\.request.returnAddress.slot) == [2])
        isFinished = queue.finishIfDrained()
        #expect(isFinished)
    }

    @Test("are refused when too many wait")
    func capacity() {
        var queue = LaneQueue(capacity: 8, requestTimeout: timeout)
        queue.addLocked([request(ada, 1)], .busy, at: start)
        _ = queue.enqueue([request(ada, 2), request(ada, 3)])
        _ = queue.close()
        #expect(queue.take(atMost: 10, at: start) == nil)
        #expect(queue.lockedCount == 2)
        #expect(queue.nextLook.map { $0 <= .now } == true)
        let refused = queue.expireLocked(at: Deadline(start))
        #expect(refused == [LockedUsers.Waiting(request: request(ada, 3), reason: .busy)])
    }

    @Test("are handed over with the user, before those that came later")
    func handedOver() {
        var queue = queue(request(ada, 1))
        _ = queue.enqueue([request(ada, 2), request(ben, 3)])
        var lanes = [Int?](repeating: nil, count: LaneRoutes.units)
        lanes[LaneRoutes.unit(of: ada)] = 1
        #expect(queue.handOver(to: lanes) == .waiting([request(ada, 1), request(ada, 2)]))
        _ = queue.enqueue([request(ada, 4)])
        #expect(queue.handOver(to: lanes) == .waiting([request(ada, 4)]))
        #expect(queue.handOver(to: lanes) == .done)
        #expect(queue.enqueue([request(ada, 5)]).forwarded == [1: [request(ada, 5)]])
        #expect(queue.count == 1 && queue.lockedCount == 0)
        #expect(queue.take(atMost: 10, at: start) == batch(request(ben, 3)))
    }

    @Test("and all others that arrive while they are being handed over stay in their order if that ends early")
    func handedOverInVain() {
        var queue = LaneQueue(capacity: 100, requestTimeout: timeout)
        _ = queue.enqueue([request(ada, 1), request(ben, 2)])
        var lanes = [Int?](repeating: nil, count: LaneRoutes.units)
        lanes[LaneRoutes.unit(of: ada)] = 1
        #expect(queue.handOver(to: lanes) == .waiting([request(ada, 1)]))
        _ = queue.enqueue([request(ada, 3), request(ben, 4)])
        #expect(queue.count == 3)
        queue.keep([request(ada, 1)])
        #expect(queue.count == 4)
        guard case .batch(let taken)? = queue.take(atMost: 10, at: start) else {
            Issue.record("nothing waits")
            return
        }
        #expect(taken.filter { $0.user == ada }.map(\.returnAddress.slot) == [1, 3])
        #expect(taken.filter { $0.user == ben }.map(\.returnAddress.slot) == [2, 4])
    }
}
