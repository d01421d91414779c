import Engine
import LineProtocol
import NIOCore
import TestSupport
import Testing
import Usage

@testable import LineServer
@testable import ServiceCore

@Suite("A connection that authenticates")
struct AuthenticationTests {
    private let dependencies = ConnectionStateMachine.Dependencies(serverVersion: "1.2.3", info: { [] })
    private let identity = Identity(tokenID: 7, name: "app", permissions: Permissions([.chat, .operator]))
    private let credentials = Credentials(name: nil, token: Secret("x"))

    @Test("is answered OK, and has its token's identity from then on")
    func accepted() {
        var machine = ConnectionStateMachine.fixture()
        let asked = machine.receive(.command(.authenticate(credentials)), dependencies)
        #expect(asked == .authenticate(credentials, hello: nil))
        #expect(machine.identity == nil)
        machine.completeAuthentication(.success(identity), hello: nil, dependencies)
        #expect(machine.identity == identity)
        #expect(replies(&machine) == text([.ok]))
    }

    @Test("keeps its identity after a wrong token")
    func refused() {
        var machine = ConnectionStateMachine.fixture()
        machine.completeAuthentication(.failure(.wrongToken), hello: nil, dependencies)
        #expect(machine.identity == nil)
        machine.completeAuthentication(.success(identity), hello: nil, dependencies)
        machine.completeAuthentication(.failure(.wrongToken), hello: nil, dependencies)
        #expect(machine.identity == identity)
        #expect(replies(&machine) == text([.error(.wrongToken), .ok, .error(.wrongToken)]))
    }

    @Test("may authenticate with HELLO; a wrong token leaves the protocol version unchanged")
    func hello() {
        var machine = ConnectionStateMachine.fixture()
        let hello = DecodedRequest.command(.hello(version: 3, credentials: credentials))
        #expect(machine.receive(hello, dependencies) == .authenticate(credentials, hello: 3))
        machine.completeAuthentication(.failure(.wrongToken), hello: 3, dependencies)
        #expect(replies(&machine) == text([.error(.wrongToken)]))
        machine.completeAuthentication(.success(identity), hello: 3, dependencies)
        #expect(replies(&machine) == text([.hello(version: 3, serverVersion: "1.2.3", connectionID: 7)]))
    }

    @Test("is answered in order, after earlier requests that are still executing")
    func order() {
        var machine = ConnectionStateMachine.fixture()
        let consume = DecodedRequest.command(.consume(user: ada, messages: 1))
        guard case .submit(_, _, let slot) = machine.receive(consume, dependencies) else {
            Issue.record("not for the store")
            return
        }
        _ = machine.receive(.command(.authenticate(credentials)), dependencies)
        machine.completeAuthentication(.success(identity), hello: nil, dependencies)
        #expect(replies(&machine) == "")
        let away = EngineError(.unavailable, "away")
        machine.complete(slot: slot, .failure(away))
        #expect(replies(&machine) == text([.error(ReplyError(away)), .ok]))
    }

    @Test("has its changes audited under its token's name; without a token under none")
    func actor() {
        var machine = ConnectionStateMachine.fixture()
        let forget = DecodedRequest.command(.forget(user: ada))
        #expect(machine.receive(forget, dependencies) == .submit(ada, .forget, slot: 0))
        machine.completeAuthentication(.success(identity), hello: nil, dependencies)
        let asked: [(Command, OperatorChange)] = [
            (.forget(user: ada), .forget), (.resetUsage(user: ada, period: nil), .resetUsage(nil, parts: nil)),
            (.setPlan(PlanChange(user: ada, plan: "paid")), .setPlan(PlanChange(user: ada, plan: "paid"))),
        ]
        for (index, (command, change)) in asked.enumerated() {
            #expect(
                machine.receive(.command(command), dependencies)
                    == .submit(ada, .change(change, by: ChangeAuthor(actor: "token:app")), slot: UInt64(index + 2))
            )
        }
        let consume = DecodedRequest.command(.consume(user: ada, messages: 1))
        #expect(machine.receive(consume, dependencies) == .submit(ada, .consume(1), slot: 5))
    }

    @Test("answers pending requests after its token ends, and refuses the next one with the reason")
    func ended() {
        var machine = ConnectionStateMachine.fixture()
        machine.completeAuthentication(.success(identity), hello: nil, dependencies)
        let consume = DecodedRequest.command(.consume(user: ada, messages: 1))
        guard case .submit(_, _, let slot) = machine.receive(consume, dependencies) else {
            Issue.record("not for the store")
            return
        }
        machine.drain(because: .tokenEnded)
        machine.drain()
        #expect(machine.receive(consume, dependencies) == .replied)
        #expect(!machine.acceptsRequests && !machine.isFinished)
        let away = EngineError(.unavailable, "away")
        machine.complete(slot: slot, .failure(away))
        #expect(replies(&machine) == text([.ok, .error(ReplyError(away)), .error(.tokenEnded)]))
        #expect(machine.isFinished)
    }

    @Test("cannot change its identity while it is subscribed")
    func subscribed() throws {
        let channel = try #require(UsageChannel("usage:7f1c0a52-3a51-4a7e-9d55-0b6a3f1f7c11"))
        for version in [2, 3] {
            var machine = ConnectionStateMachine.fixture()
            _ = machine.receive(.command(.hello(version: version)), dependencies)
            guard case .subscribe(_, let slot) = machine.receive(.command(.subscribe([channel])), dependencies) else {
                Issue.record("not subscribed")
                return
            }
            machine.complete(slot: slot, .subscribed)
            _ = machine.takeReplies()
            #expect(machine.receive(.command(.authenticate(credentials)), dependencies) == .replied)
            #expect(replies(&machine).hasPrefix("-ERR "))
        }
    }

    @Test("receives no more changes once its token ends, but does while the service drains")
    func silence() throws {
        let channel = try #require(UsageChannel("usage:\(ada)"))
        for (reason, isTold) in [(ReplyError.draining, true), (.tokenEnded, false), (.tokenIsRequired, false)] {
            var machine = ConnectionStateMachine.fixture()
            guard case .subscribe(_, let slot) = machine.receive(.command(.subscribe([channel])), dependencies) else {
                Issue.record("not subscribed")
                return
            }
            machine.complete(slot: slot, .subscribed)
            _ = machine.takeReplies()
            machine.drain(because: reason)
            machine.push(Answer(user: ada, status: .ok, snapshot: .paid(used: 1)))
            #expect((machine.takeReplies() != nil) == isTold, "\(reason.text)")
        }
    }

    @Test("is closed if it does not authenticate in time, counted from when a token is first required")
    func timeout() {
        let limits = ConnectionLimits(
            request: RequestLimits(),
            inFlightMaximum: 1,
            outputBytesMaximum: 1,
            outputTimeout: .seconds(20),
            idleTimeout: .seconds(300),
            firstRequestTimeout: .seconds(60),
            connectionsMaximum: 1,
            allowsWhenUnavailable: false,
            authenticationTimeout: .seconds(5)
        )
        func at(_ seconds: Int64) -> NIODeadline { .uptimeNanoseconds(1_000_000_000_000) + .seconds(seconds) }
        var timeouts = ConnectionTimeouts()
        timeouts.start(at: at(0), limits)
        timeouts.requestsReceived(at: at(1))
        timeouts.requireAuthentication(from: at(2), limits)
        timeouts.requireAuthentication(from: at(4), limits)
        #expect(timeouts.nextDeadline == at(7))
        #expect(timeouts.expire(at: at(6), isIdle: true) == nil)
        #expect(timeouts.expire(at: at(7), isIdle: true) == .notAuthenticated)
        #expect(timeouts.expire(at: at(7), isIdle: false) == nil, "what was asked before is still answered")
        #expect(timeouts.expire(at: at(8), isIdle: true) == .notAuthenticated)
        timeouts.authenticated()
        #expect(timeouts.expire(at: at(9), isIdle: true) == nil)
        #expect(limits.requestBeforeAuthentication.bytesMaximum == 512)
    }
}
