import LineProtocol
import NIOCore
import TestSupport
import Testing
import Usage

@testable import Engine
@testable import LineServer
@testable import ServiceCore

@Suite("A connection's state machine")
struct ConnectionStateMachineTests {
    private let dependencies = ConnectionStateMachine.Dependencies(serverVersion: "1.2.3", info: { ["version=1.2.3"] })

    private func answer(used: Int) -> Answer {
        Answer(user: ada, status: .allowed, snapshot: .paid(used: used))
    }

    private func reply(used: Int) -> Reply { .answer(answer(used: used)) }

    private var consume: DecodedRequest { .command(.consume(user: ada, messages: 1)) }

    /// Sends requests for the engine; returns their slots.
    private func submit(_ count: Int, to machine: inout ConnectionStateMachine) -> [UInt64] {
        (0..<count).compactMap { _ in
            guard case .submit(_, _, let slot) = machine.receive(consume, dependencies) else { return nil }
            return slot
        }
    }

    @Test("replies in the order of the requests, however the answers come back")
    func order() {
        var machine = ConnectionStateMachine.fixture()
        let slots = submit(3, to: &machine)
        #expect(machine.receive(.command(.ping(text: nil)), dependencies) == .replied)
        machine.complete(slot: slots[2], answer(used: 3))
        machine.complete(slot: slots[1], answer(used: 2))
        #expect(replies(&machine) == text([]), "the first is not answered yet")
        machine.complete(slot: slots[0], answer(used: 1))
        #expect(replies(&machine) == text([reply(used: 1), reply(used: 2), reply(used: 3), .pong]))
        #expect(machine.isIdle && !machine.isFinished)
        let next = submit(1, to: &machine)
        machine.complete(slot: next[0], answer(used: 4))
        #expect(replies(&machine) == text([reply(used: 4)]))
    }

    @Test("accepts no more requests than may be in flight, until replies are taken")
    func inFlightLimit() {
        var machine = ConnectionStateMachine.fixture(slots: 2)
        let slots = submit(2, to: &machine)
        #expect(!machine.acceptsRequests)
        machine.complete(slot: slots[1], answer(used: 2))
        #expect(!machine.acceptsRequests, "answered, but its reply waits for the first")
        machine.complete(slot: slots[0], answer(used: 1))
        _ = machine.takeReplies()
        #expect(machine.acceptsRequests)
    }

    @Test("accepts no more requests while long replies are not taken")
    func outputLimit() {
        var machine = ConnectionStateMachine.fixture(slots: 10_000)
        var requests = 0
        while machine.acceptsRequests, requests < 10_000 {
            #expect(machine.receive(.command(.help(verb: nil)), dependencies) == .replied)
            requests += 1
        }
        #expect(requests > 10 && requests < 1_000)
        #expect(replies(&machine) == text(Array(repeating: .help(about: nil), count: requests)))
        #expect(machine.acceptsRequests)
    }

    @Test("answers all complete requests after the peer has closed its side, and then is finished")
    func halfClose() {
        var machine = ConnectionStateMachine.fixture()
        let slots = submit(2, to: &machine)
        machine.inputEnded()
        #expect(!machine.acceptsRequests && !machine.isFinished)
        machine.complete(slot: slots[1], answer(used: 2))
        machine.complete(slot: slots[0], answer(used: 1))
        #expect(!machine.isFinished)
        #expect(replies(&machine) == text([reply(used: 1), reply(used: 2)]))
        #expect(machine.isFinished)
    }

    @Test("accepts nothing after a fatal error, which is the last reply")
    func fatal() {
        var machine = ConnectionStateMachine.fixture()
        let slots = submit(1, to: &machine)
        let error = ReplyError(code: .protocol, text: "broken")
        #expect(machine.receive(.fatal(error), dependencies) == .replied)
        #expect(!machine.acceptsRequests)
        machine.complete(slot: slots[0], answer(used: 1))
        #expect(replies(&machine) == text([reply(used: 1), .error(error)]))
        #expect(machine.isFinished)
    }

    @Test("continues after an error that is not fatal")
    func failure() {
        var machine = ConnectionStateMachine.fixture()
        let error = ReplyError(code: .badArg, text: "no")
        #expect(machine.receive(.failure(error), dependencies) == .replied)
        #expect(machine.acceptsRequests && !machine.isFinished)
        #expect(replies(&machine) == text([.error(error)]))
    }

    @Test("draining, answers accepted requests, refuses the next one and then is finished")
    func draining() {
        var machine = ConnectionStateMachine.fixture()
        let slots = submit(1, to: &machine)
        machine.drain()
        #expect(machine.acceptsRequests, "the next request gets the reason")
        #expect(machine.receive(consume, dependencies) == .replied)
        #expect(!machine.acceptsRequests && !machine.isFinished)
        machine.complete(slot: slots[0], answer(used: 1))
        #expect(replies(&machine) == text([reply(used: 1), .error(.draining)]))
        #expect(machine.isFinished)
        machine.drain()
        #expect(machine.isFinished)
    }

    @Test("draining, is finished without a reply when the peer closes its side")
    func drainingHalfClose() {
        var machine = ConnectionStateMachine.fixture()
        machine.drain()
        #expect(!machine.isFinished)
        machine.inputEnded()
        #expect(machine.isFinished)
        #expect(replies(&machine) == text([]))
    }

    @Test("replies OK to QUIT after all earlier replies, and accepts nothing more")
    func quit() {
        var machine = ConnectionStateMachine.fixture()
        let slots = submit(1, to: &machine)
        #expect(machine.receive(.command(.quit), dependencies) == .replied)
        #expect(!machine.acceptsRequests)
        #expect(replies(&machine) == text([]))
        machine.complete(slot: slots[0], answer(used: 1))
        #expect(replies(&machine) == text([reply(used: 1), .ok]))
        #expect(machine.isFinished)
    }

    @Test("drops outcomes after it is closed")
    func completionAfterClose() {
        var machine = ConnectionStateMachine.fixture()
        let slots = submit(2, to: &machine)
        machine.close()
        #expect(!machine.acceptsRequests && machine.isIdle)
        machine.complete(slot: slots[1], answer(used: 2))
        machine.inputEnded()
        machine.drain()
        #expect(replies(&machine) == text([]))
        #expect(!machine.isFinished, "a closed connection is not to be closed again")
    }

    @Test("submits the operation of each verb to the engine")
    func operations() throws {
        let november = BillingPeriod(year: 2026, month: 11)
        let change = PlanChange(user: ada, plan: "paid")
        let key = messageKey("k")
        let parts = try #require(MessageParts(model: "gpt-5", member: ben))
        let verbs: [(Command, EngineOperation)] = [
            (.consume(user: ada, messages: 3), .consume(3)), (.check(user: ada, messages: 2), .check(2)),
            (.usage(user: ada, period: nil), .usage), (.usage(user: ada, period: november), .usageInPeriod(november)),
            (.allowances(user: ada, period: nil), .allowances(nil)),
            (.allowances(user: ada, period: november), .allowances(november)),
            (.history(user: ada, months: 5), .history(5)), (.setPlan(change), .setPlan(change)),
            (.resetUsage(user: ada, period: november), .resetUsage(november)), (.forget(user: ada), .forget),
            (.grant(user: ada, Grant(5, key: key, reason: "a b")), .grant(Grant(5, key: key, reason: "a b"))),
            (.consume(user: ada, messages: 3).inParts(parts), .batched(.consume(3), parts: parts)),
            (
                .reserve(user: ada, messages: 3, key: key, ttlSeconds: 9).inParts(parts),
                .batched(.reserve(3, key: key, ttlSeconds: 9), parts: parts)
            ),
            (.check(user: ada, messages: 2).inParts(parts), .batched(.check(2), parts: parts)),
            (.usage(user: ada, period: nil).inParts(parts), .batched(.usage, parts: parts)),
            (.usage(user: ada, period: november).inParts(parts), .unbatched(.usageInPeriod(november, parts: parts))),
            (.resetUsage(user: ada, period: nil).inParts(parts), .change(.resetUsage(nil, parts: parts))),
            (.closeWindow(user: ada).inParts(parts), .change(.closeWindow(parts: parts))),
        ]
        var machine = ConnectionStateMachine.fixture()
        for (slot, (command, operation)) in verbs.enumerated() {
            #expect(machine.receive(.command(command), dependencies) == .submit(ada, operation, slot: UInt64(slot)))
        }
    }

    @Test("submits reports to the reader, and keeps the replies in order")
    func readings() {
        let november = BillingPeriod(year: 2026, month: 11)
        var machine = ConnectionStateMachine.fixture(allows: true)
        let action = machine.receive(.command(.report(period: nil)), dependencies)
        #expect(action == .read(.report(.open), slot: 0))
        let top = machine.receive(.command(.top(period: november, count: 5)), dependencies)
        #expect(top == .read(.top(november, count: 5), slot: 1))
        let slot = submit(1, to: &machine)[0]
        machine.complete(slot: slot, answer(used: 1))
        machine.complete(slot: 1, .failure(EngineError(.unavailable, "away")))
        #expect(replies(&machine) == text([]), "later replies wait for the report")
        let report = PeriodReport(period: november)
        machine.complete(slot: 0, .report(report))
        let away = Reply.error(ReplyError(EngineError(.unavailable, "away")))
        #expect(replies(&machine) == text([.report(report), away, reply(used: 1)]))
    }

    @Test("answers verbs that need no engine")
    func withoutEngine() {
        var machine = ConnectionStateMachine.fixture()
        let commands: [Command] = [
            .ping(text: "hello"), .echo(text: "x"), .help(verb: nil), .info, .hello(version: 3), .select,
            .client(.id), .client(.name), .command(.descriptions), .command(.count),
        ]
        for command in commands { #expect(machine.receive(.command(command), dependencies) == .replied) }
        let expected: [Reply] = [
            .text("hello"), .text("x"), .help(about: nil), .lines(["version=1.2.3"]),
            .hello(version: 3, serverVersion: "1.2.3", connectionID: 7), .ok,
            .integer(7), .null(version: 3), .empty, .integer(Verb.allCases.count),
        ]
        #expect(replies(&machine) == text(expected))
    }

    @Test("answers ECHO and INFO of an array as Redis does")
    func bulk() {
        var machine = ConnectionStateMachine.fixture()
        for command in [Command.echo(text: "x"), .info, .ping(text: "hello")] {
            #expect(machine.receive(.command(command), dependencies, wasArray: true) == .replied)
        }
        let info = "# Server\r\nredis_mode:standalone\r\nrole:master\r\nversion:1.2.3\r\n"
        #expect(replies(&machine) == text([.bulk("x"), .bulk(EchoedBytes(info)), .bulk("hello")]))
    }

    private let keepChatting = "I couldn't check your usage right now — don't worry, you can keep chatting."
    private let tryAgain = "I couldn't check your usage right now. Let's try again in a moment."

    @Test("allows messages uncounted where that is set, if the database cannot be reached", arguments: [true, false])
    func degraded(allows: Bool) {
        var machine = ConnectionStateMachine.fixture(allows: allows)
        let away = EngineError(.unreachable, "away")
        let commands: [Command] = [
            .consume(user: ada, messages: 1), .check(user: ada, messages: 1),
            .reserve(user: ada, messages: 1, key: messageKey("k"), ttlSeconds: 60),
            .commit(user: ada, key: messageKey("k")), .release(user: ada, key: messageKey("k")),
            .usage(user: ada, period: nil),
        ]
        for (slot, command) in commands.enumerated() {
            _ = machine.receive(.command(command), dependencies)
            machine.complete(slot: UInt64(slot), .failure(away))
        }
        let slots = submit(2, to: &machine)
        machine.complete(slot: slots[0], .failure(EngineError(.unknown, "lost")))
        machine.complete(slot: slots[1], .failure(.unanswered))
        let refused = Reply.error(ReplyError(away))
        var unreadable = ReplyError(away)
        unreadable.text = tryAgain
        let shown = Reply.error(unreadable)
        let uncounted = "degraded=1 banner=\"\(keepChatting)\""
        let allowed = Reply.text("ALLOWED user=\(ada) \(uncounted)")
        let held = Reply.text("HELD user=\(ada) \(uncounted)")
        let released = Reply.text("OK user=\(ada) released=0 \(uncounted)")
        let lost = Reply.error(ReplyError(code: .unknown, text: "lost"))
        let first = allows ? [allowed, allowed, held, allowed, released] : Array(repeating: refused, count: 5)
        let silent = allows ? allowed : Reply.error(ReplyError(.unknown))
        #expect(replies(&machine) == text(first + [shown, lost, silent]))
    }

    @Test("allows nothing uncounted if the database is there", arguments: [EngineError.Code.unavailable, .overloaded])
    func undegraded(code: EngineError.Code) {
        var machine = ConnectionStateMachine.fixture(allows: true)
        let busy = EngineError(code, "busy")
        let commands: [Command] = [
            .consume(user: ada, messages: 1), .commit(user: ada, key: messageKey("k")), .usage(user: ada, period: nil),
        ]
        for (slot, command) in commands.enumerated() {
            _ = machine.receive(.command(command), dependencies)
            machine.complete(slot: UInt64(slot), .failure(busy))
        }
        var unreadable = ReplyError(busy)
        unreadable.text = tryAgain
        let refused = Reply.error(ReplyError(busy))
        #expect(replies(&machine) == text([refused, refused, .error(unreadable)]))
    }

    @Test("sends no messages once its token has ended, also if the service was shutting down before")
    func tokenEndedWhileDraining() {
        var machine = ConnectionStateMachine.fixture()
        _ = machine.receive(.command(.hello(version: 3, credentials: nil)), dependencies)
        if case .subscribe(_, let slot) = machine.receive(.command(.subscribe([UsageChannel(ada)])), dependencies) {
            machine.complete(slot: slot, .subscribed)
        }
        _ = machine.takeReplies()
        machine.drain()
        machine.drain(because: .tokenEnded)
        machine.push(Answer(user: ada, status: .ok, snapshot: .paid(used: 1)))
        #expect(machine.takeReplies() == nil)
    }

    @Test("maps the engine's errors to codes of the protocol and retry times")
    func errors() {
        let codes: [(EngineError.Code, ReplyError.Code, Bool)] = [
            (.unreachable, .unavailable, true),
            (.unavailable, .unavailable, true), (.unknown, .unknown, false), (.overloaded, .overloaded, true),
            (.notFound, .notFound, false), (.badArgument, .badArg, false), (.internal, .internal, false),
            (.conflict, .conflict, false), (.expired, .expired, false),
        ]
        for (code, replyCode, isRetried) in codes {
            let error = ReplyError(EngineError(code, "why"))
            #expect(error.code == replyCode)
            #expect(error.text == "why")
            #expect((error.retryAfterMilliseconds != nil) == isRetried)
        }
    }
}
