import NIOCore
import TestSupport
import Testing

@testable import HeadroomClient

@Suite("Choosing an endpoint")
struct EndpointsStateMachineTests {
    private typealias Machine = EndpointsStateMachine<String>

    private var generator = SeededGenerator(seed: 1)

    private static func at(_ milliseconds: Int64) -> NIODeadline { .uptimeNanoseconds(0) + .milliseconds(milliseconds) }

    private static func machine(_ endpoints: Int, connections: Int = 1) -> Machine {
        Machine(
            endpoints: endpoints,
            connectionsPerEndpoint: connections,
            backoff: Backoff(range: .milliseconds(100)...(.milliseconds(400)))
        )
    }

    private static func attempts(_ next: Machine.Next) -> [Machine.Attempt] {
        if case .connect(let attempts) = next { attempts } else { [] }
    }

    private static func isAccepted(_ opened: Machine.Opened) -> Bool {
        if case .accepted = opened { true } else { false }
    }

    @Test("The first endpoint is used while it is reachable")
    func first() throws {
        var machine = Self.machine(2)
        let attempt = try #require(Self.attempts(machine.next(now: Self.at(0))).first)
        #expect(attempt.endpoint == 0)
        #expect(machine.next(now: Self.at(0)) == .nothing)
        #expect(machine.choose() == nil)
        #expect(Self.isAccepted(machine.opened(attempt, "a")) && machine.choose() == "a")
        #expect(machine.next(now: Self.at(1)) == .nothing)
    }

    @Test("After a failure the next endpoint is tried at once; after all failed, the first one after its pause")
    mutating func failover() throws {
        var machine = Self.machine(2)
        var tried: [Int] = []
        for _ in 0..<2 {
            let attempt = try #require(Self.attempts(machine.next(now: Self.at(0))).first)
            tried.append(attempt.endpoint)
            #expect(machine.failed(attempt, now: Self.at(0), using: &generator) == .notOpened)
            #expect(machine.failed(attempt, now: Self.at(0), using: &generator) == .nothingToReport)
        }
        #expect(tried == [0, 1])
        guard case .wait(let until) = machine.next(now: Self.at(0)) else {
            Issue.record("an endpoint was tried again at once")
            return
        }
        #expect((Self.at(50)...Self.at(100)).contains(until))
        #expect(Self.attempts(machine.next(now: until)).count == 1)
    }

    @Test("An endpoint that has not failed is tried first, also when the pause of one that has is over")
    mutating func untried() throws {
        var machine = Self.machine(2)
        let first = try #require(Self.attempts(machine.next(now: Self.at(0))).first)
        _ = machine.opened(first, "a")
        machine.answered(first)
        #expect(machine.closed(first, now: Self.at(0), using: &generator) == .lost)
        let second = try #require(Self.attempts(machine.next(now: Self.at(10_000))).first)
        #expect(second.endpoint == 1)
        #expect(machine.failed(second, now: Self.at(10_000), using: &generator) == .notOpened)
        #expect(Self.attempts(machine.next(now: Self.at(20_000))).first?.endpoint == 0)
    }

    @Test("A released connection is no failure, and another can be opened at once")
    mutating func left() throws {
        var machine = Self.machine(2)
        let first = try #require(Self.attempts(machine.next(now: Self.at(0))).first)
        _ = machine.opened(first, "a")
        machine.released(first)
        #expect(machine.choose() == nil)
        let second = try #require(Self.attempts(machine.next(now: Self.at(0))).first)
        #expect(second.endpoint == 0)
        #expect(machine.closed(first, now: Self.at(0), using: &generator) == .nothingToReport)
        _ = machine.opened(second, "b")
        #expect(machine.choose() == "b")
    }

    @Test("A connection that closes while it is being opened delays other attempts until its error is reported")
    mutating func closedWhileOpening() throws {
        var machine = Self.machine(2)
        let attempt = try #require(Self.attempts(machine.next(now: Self.at(0))).first)
        #expect(machine.closed(attempt, now: Self.at(0), using: &generator) == .nothingToReport)
        #expect(machine.next(now: Self.at(10_000)) == .nothing)
        #expect(!Self.isAccepted(machine.opened(attempt, "a")) && machine.choose() == nil)
        #expect(machine.failed(attempt, now: Self.at(0), using: &generator) == .notOpened)
        let other = try #require(Self.attempts(machine.next(now: Self.at(0))).first)
        #expect(Self.isAccepted(machine.opened(other, "b")) && machine.choose() == "b")
        #expect(machine.closed(other, now: Self.at(0), using: &generator) == .lost)
    }

    /// With two endpoints, the first of which has failed at 0 ms, so that the second one is in use.
    private mutating func machineAwayFromTheFirst() throws -> Machine {
        var machine = Self.machine(2)
        let first = try #require(Self.attempts(machine.next(now: Self.at(0))).first)
        _ = machine.opened(first, "a")
        #expect(machine.closed(first, now: Self.at(0), using: &generator) == .lost)
        let second = try #require(Self.attempts(machine.next(now: Self.at(0))).first)
        #expect(second.endpoint == 1 && !second.isReturn)
        _ = machine.opened(second, "b")
        #expect(machine.choose() == "b")
        return machine
    }

    @Test("The client returns to an earlier endpoint after a pause, once that answers, and leaves the later one")
    mutating func returns() throws {
        var machine = try machineAwayFromTheFirst()
        #expect(machine.isSettled(now: Self.at(399)) && machine.next(now: Self.at(399)) == .nothing)
        #expect(!machine.isSettled(now: Self.at(600)))
        let attempt = try #require(Self.attempts(machine.next(now: Self.at(600))).first)
        #expect(attempt.endpoint == 0 && attempt.isReturn)
        // Requests use the later one meanwhile, and there is no second attempt.
        #expect(machine.isSettled(now: Self.at(600)) && machine.next(now: Self.at(600)) == .nothing)
        #expect(machine.choose() == "b")
        guard case .returned(from: ["b"]) = machine.opened(attempt, "c") else {
            Issue.record("the later endpoint is still in use")
            return
        }
        #expect(machine.choose() == "c" && machine.connections == ["c"])
        #expect(machine.isSettled(now: Self.at(600)))
    }

    @Test("Failed attempts to return double the pause, and do not disturb the endpoint in use")
    mutating func returnFails() throws {
        var machine = try machineAwayFromTheFirst()
        var now = Self.at(600)
        for whole in [800, 1_600, 3_200, 6_400, 12_800, 12_800] as [Int64] {
            let attempt = try #require(Self.attempts(machine.next(now: now)).first)
            #expect(attempt.isReturn && machine.failed(attempt, now: now, using: &generator) == .notOpened)
            #expect(machine.next(now: now + .milliseconds(whole - 1)) == .nothing && machine.choose() == "b")
            now = now + .milliseconds(whole * 3 / 2)
        }
    }

    @Test("An attempt to return does not delay the way to another endpoint when the one in use fails")
    mutating func failureWhileReturning() throws {
        var machine = try machineAwayFromTheFirst()
        let attempt = try #require(Self.attempts(machine.next(now: Self.at(600))).first)
        _ = machine.closed(Machine.Attempt(id: 2, endpoint: 1), now: Self.at(600), using: &generator)
        guard case .wait(let until) = machine.next(now: Self.at(600)) else {
            Issue.record("there is nothing to wait for")
            return
        }
        let other = try #require(Self.attempts(machine.next(now: until)).first)
        #expect(other.endpoint == 1 && !other.isReturn)
        guard case .accepted = machine.opened(attempt, "c") else {
            Issue.record("the first connection is not used")
            return
        }
        #expect(machine.choose() == "c")
    }

    @Test("Failures in a row double the pause up to its bound, and a success resets it")
    mutating func backoff() throws {
        var machine = Self.machine(1)
        var now = Self.at(0)
        for whole in [100, 200, 400, 400] as [Int64] {
            let attempt = try #require(Self.attempts(machine.next(now: now)).first)
            _ = machine.failed(attempt, now: now, using: &generator)
            guard case .wait(let until) = machine.next(now: now) else {
                Issue.record("there is nothing to wait for")
                return
            }
            #expect((now + .milliseconds(whole / 2)...now + .milliseconds(whole)).contains(until))
            now = until
        }
        let attempt = try #require(Self.attempts(machine.next(now: now)).first)
        _ = machine.opened(attempt, "a")
        machine.answered(attempt)
        _ = machine.closed(attempt, now: now, using: &generator)
        guard case .wait(let until) = machine.next(now: now) else { return }
        #expect(until <= now + .milliseconds(100))
    }

    @Test("A connection that is accepted and closed without an answer is a failure")
    mutating func unanswered() throws {
        var machine = Self.machine(1)
        var now = Self.at(0)
        for whole in [100, 200, 400] as [Int64] {
            let attempt = try #require(Self.attempts(machine.next(now: now)).first)
            _ = machine.opened(attempt, "a")
            #expect(machine.closed(attempt, now: now, using: &generator) == .lost)
            guard case .wait(let until) = machine.next(now: now) else {
                Issue.record("it is tried again at once")
                return
            }
            #expect((now + .milliseconds(whole / 2)...now + .milliseconds(whole)).contains(until))
            now = until
        }
    }

    @Test("Further connections are opened after the first, and requests use them in turn")
    func several() throws {
        var machine = Self.machine(1, connections: 3)
        let one = Self.attempts(machine.next(now: Self.at(0)))
        #expect(one.count == 1)
        _ = machine.opened(one[0], "a")
        let more = Self.attempts(machine.next(now: Self.at(0)))
        #expect(more.count == 2 && machine.next(now: Self.at(0)) == .nothing)
        _ = machine.opened(more[0], "b")
        _ = machine.opened(more[1], "c")
        let chosen = (0..<3).map { _ in machine.choose() }
        #expect(Set(chosen) == ["a", "b", "c"])
    }

    @Test("A connection that closed before it was reported is not used")
    mutating func early() throws {
        var machine = Self.machine(1)
        let attempt = try #require(Self.attempts(machine.next(now: Self.at(0))).first)
        _ = machine.failed(attempt, now: Self.at(0), using: &generator)
        #expect(!Self.isAccepted(machine.opened(attempt, "a")) && machine.choose() == nil)
    }
}
