import LineProtocol
import NIOCore
import TestSupport
import Testing

@testable import HeadroomClient

@Suite("Retries")
struct RetryStateMachineTests {
    private var generator = SeededGenerator(seed: 1)

    private static func at(_ milliseconds: Int64) -> NIODeadline { .uptimeNanoseconds(0) + .milliseconds(milliseconds) }

    private static func machine(_ repeatability: Repeatability, hasCredentials: Bool = false) -> RetryStateMachine {
        RetryStateMachine(
            repeatability,
            key: "k",
            deadline: at(2_000),
            attemptTimeout: .milliseconds(500),
            hasCredentials: hasCredentials,
            backoff: Backoff(range: .milliseconds(20)...(.milliseconds(200)))
        )
    }

    private static func error(_ line: String) -> Exchange { .reply(.error(ReceivedError(line))) }

    private static func pause(_ action: RetryStateMachine.Action) -> Duration? {
        if case .retry(let pause) = action { pause } else { nil }
    }

    private static func code(_ action: RetryStateMachine.Action) -> HeadroomError.Code? {
        if case .fail(let error) = action { error.code } else { nil }
    }

    @Test(
        "A request is sent again for exactly those codes for which the protocol says so",
        arguments: ReplyError.Code.allCases
    )
    mutating func codes(code: ReplyError.Code) {
        var machine = Self.machine(.keyed)
        let action = machine.next(after: Self.error("\(code.rawValue) text"), now: Self.at(0), using: &generator)
        let isSentAgain = [.unavailable, .overloaded, .draining, .unknown].contains(code)
        #expect((Self.pause(action) != nil) == isSentAgain)
        #expect((Self.code(action)?.rawValue == code.rawValue) == !isSentAgain)
    }

    @Test("A request that may have taken effect is sent again only with a key or if it changes nothing")
    mutating func safety() {
        for exchange in [Exchange.lost(wasSent: true, cause: nil), .timedOut, Self.error("UNKNOWN text")] {
            for repeatability in [Repeatability.keyed, .reading] {
                var machine = Self.machine(repeatability)
                #expect(Self.pause(machine.next(after: exchange, now: Self.at(0), using: &generator)) != nil)
            }
            var once = Self.machine(.once)
            #expect(Self.code(once.next(after: exchange, now: Self.at(0), using: &generator)) == .unknown)
        }
    }

    @Test("An answer repeats an earlier call unless an attempt of this one may have taken effect")
    mutating func repetition() {
        var usage = UsageStatus.degraded(.random)
        usage.isRepeated = true
        let reply = Exchange.reply(.answer(ReceivedAnswer(status: .allowed, usage: usage)))
        let attempts: [(Exchange, isRepeated: Bool)] = [
            (.lost(wasSent: true, cause: nil), false), (.timedOut, false), (Self.error("UNKNOWN t"), false),
            (.lost(wasSent: false, cause: nil), true), (Self.error("OVERLOADED t"), true),
            (Self.error("UNAVAILABLE t"), true), (Self.error("DRAINING t"), true),
        ]
        for (attempt, isRepeated) in attempts {
            var machine = Self.machine(.keyed)
            _ = machine.next(after: attempt, now: Self.at(0), using: &generator)
            guard case .answer(.answer(let answer)) = machine.next(after: reply, now: Self.at(1), using: &generator)
            else {
                Issue.record("no answer after \(attempt)")
                return
            }
            #expect(answer.usage.isRepeated == isRepeated, "\(attempt)")
        }
    }

    @Test("A request that was certainly not sent is sent again")
    mutating func notDone() {
        for exchange in [
            Exchange.lost(wasSent: false, cause: nil), Self.error("UNAVAILABLE t"), Self.error("DRAINING t"),
        ] {
            var machine = Self.machine(.once)
            #expect(Self.pause(machine.next(after: exchange, now: Self.at(0), using: &generator)) != nil)
        }
    }

    @Test("The service's retry advice is followed, with a random addition")
    mutating func advice() {
        var pauses: Set<Duration> = []
        for _ in 0..<20 {
            var machine = Self.machine(.keyed)
            let action = machine.next(
                after: Self.error("OVERLOADED retry_ms=300 t"),
                now: Self.at(0),
                using: &generator
            )
            let pause = Self.pause(action) ?? .zero
            #expect((.milliseconds(300)...(.milliseconds(450))).contains(pause))
            pauses.insert(pause)
        }
        #expect(pauses.count > 10)
    }

    @Test("At the deadline the error is the refusal, unreachable, or unknown")
    mutating func deadline() {
        var refused = Self.machine(.keyed)
        let late = Self.at(1_999)
        #expect(
            Self.code(refused.next(after: Self.error("UNAVAILABLE t"), now: late, using: &generator)) == .unavailable
        )
        var unreachable = Self.machine(.keyed)
        let none = Exchange.unreachable(cause: nil)
        #expect(Self.code(unreachable.next(after: none, now: late, using: &generator)) == .unreachable)
        // Sent once, then unreachable: it may have been counted, and the error has its key.
        var unknown = Self.machine(.keyed)
        _ = unknown.next(after: .lost(wasSent: true, cause: nil), now: Self.at(0), using: &generator)
        guard case .fail(let error) = unknown.next(after: none, now: late, using: &generator) else {
            Issue.record("it did not fail")
            return
        }
        #expect(error.code == .unknown && error.key == "k" && error.isTransient)
        // A read without an answer has changed nothing.
        var reading = Self.machine(.reading)
        _ = reading.next(after: .timedOut, now: Self.at(0), using: &generator)
        #expect(Self.code(reading.next(after: none, now: late, using: &generator)) == .unreachable)
    }

    @Test("After DRAINING the request is sent again without a pause")
    mutating func draining() {
        var machine = Self.machine(.keyed)
        #expect(Self.pause(machine.next(after: Self.error("DRAINING t"), now: Self.at(0), using: &generator)) == .zero)
    }

    @Test("After NOAUTH another connection is tried once, if there is a token")
    mutating func tokenEnded() {
        for repeatability in [Repeatability.once, .keyed] {
            var machine = Self.machine(repeatability, hasCredentials: true)
            let ended = Self.error("NOAUTH the token was revoked; closing")
            #expect(Self.pause(machine.next(after: ended, now: Self.at(0), using: &generator)) == .zero)
            #expect(Self.code(machine.next(after: ended, now: Self.at(0), using: &generator)) == .notAuthenticated)
        }
    }

    @Test("An error that nothing was counted does not hold for earlier attempts")
    mutating func refusedAfterwards() {
        var machine = Self.machine(.keyed)
        _ = machine.next(after: .lost(wasSent: true, cause: nil), now: Self.at(0), using: &generator)
        let action = machine.next(after: .refused(.shutDown), now: Self.at(1), using: &generator)
        #expect(Self.code(action) == .unknown)
        var unsent = Self.machine(.keyed)
        #expect(Self.code(unsent.next(after: .refused(.shutDown), now: Self.at(1), using: &generator)) == .shutDown)
    }

    @Test("After a lost attempt an error is an unknown outcome, unless it is about the key")
    mutating func errorAfterLoss() {
        for (line, code) in [
            ("BADARG x", HeadroomError.Code.unknown), ("FORBIDDEN x", .unknown), ("INTERNAL x", .unknown),
            ("CONFLICT x", .conflict), ("EXPIRED x", .expired), ("NOTFOUND x", .notFound),
        ] {
            for repeatability in [Repeatability.keyed, .reading] {
                var machine = Self.machine(repeatability)
                _ = machine.next(after: .lost(wasSent: true, cause: nil), now: Self.at(0), using: &generator)
                let action = machine.next(after: Self.error(line), now: Self.at(1), using: &generator)
                guard case .fail(let error) = action else {
                    Issue.record("\(line) is retried")
                    continue
                }
                let given = HeadroomError.Code(rawValue: String(line.prefix { $0 != " " }))
                #expect(error.code == (repeatability == .keyed ? code : given), "\(line)")
                if code == .unknown, repeatability == .keyed {
                    #expect(error.mayHaveTakenEffect && (error.underlying as? HeadroomError)?.code == given)
                }
            }
        }
    }

    @Test("An answer that leaves the outcome unknown is marked, so that the hold is released")
    mutating func silentOnOutcome() {
        for (line, isOpen) in [("INTERNAL x", true), ("MALFORMED x", true), ("BADARG x", false), ("CONFLICT x", false)]
        {
            var machine = Self.machine(.keyed)
            guard case .fail(let error) = machine.next(after: Self.error(line), now: Self.at(0), using: &generator)
            else { continue }
            #expect(error.mayHaveTakenEffect == isOpen, "\(line)")
        }
    }

    @Test("The error of a cancellation says whether the request was sent")
    mutating func cancelled() {
        for wasSent in [false, true] {
            var machine = Self.machine(.keyed)
            let action = machine.next(after: .cancelled(wasSent: wasSent), now: Self.at(0), using: &generator)
            guard case .fail(let error) = action else { continue }
            #expect(error.code == .cancelled && error.mayHaveTakenEffect == wasSent)
        }
    }

    @Test("An attempt has its own timeout if the request can be sent again")
    func attempts() {
        #expect(Self.machine(.keyed).attemptDeadline(now: Self.at(100)) == Self.at(600))
        #expect(Self.machine(.reading).attemptDeadline(now: Self.at(1_900)) == Self.at(2_000))
        #expect(Self.machine(.once).attemptDeadline(now: Self.at(100)) == Self.at(2_000))
    }

    @Test("Every error code of the protocol has a name in the library")
    func names() {
        let named: Set<HeadroomError.Code> = [
            .unknownCommand, .badArgument, .tooLong, .protocolViolation, .notAuthenticated, .forbidden, .notFound,
            .conflict,
            .expired, .unavailable, .unknown, .overloaded, .draining, .unsupportedVersion, .internal,
        ]
        #expect(named == Set(ReplyError.Code.allCases.map { HeadroomError.Code(rawValue: $0.rawValue) }))
    }
}
