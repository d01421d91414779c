import Engine
import LineProtocol
import Logging
import Postgres
import Synchronization
import TestSupport
import Testing

@testable import ServiceCore

@Suite("Access control")
struct AccessControlTests {
    private let logger = Logger.silent

    private func control(_ setting: Authentication, perToken: Int = 100) -> AccessControl {
        AccessControl(setting, connectionsPerTokenMaximum: perToken, logger: logger)
    }

    private func reading(_ tokens: LiveToken..., ever: Bool? = nil) -> TokenSnapshot {
        TokenSnapshot(tokens: tokens, wasEverCreated: ever ?? !tokens.isEmpty)
    }

    private func authenticate(
        _ text: String,
        _ control: AccessControl,
        replacing identity: Identity? = nil
    ) -> Result<Identity, ReplyError> {
        let credentials = Credentials(name: nil, token: Secret(text))
        return control.authenticate(credentials, under: control.policy, replacing: identity)
    }

    @Test("requires a token as configured, and with auto once one was created, for ever")
    func required() {
        let expected: [(Authentication, before: Bool, after: Bool)] = [
            (.auto, false, true), (.required, true, true), (.off, false, false),
        ]
        for (setting, before, after) in expected {
            let control = control(setting)
            #expect(control.isRequired == (setting != .off), "before anything is known")
            control.update(reading())
            #expect(control.isRequired == before)
            control.update(reading(liveToken("a")))
            #expect(control.isRequired == after)
            control.update(reading(ever: true))
            #expect(control.isRequired == after, "revoking the last one opens nothing")
            #expect(control.policy.permissionsWithoutToken == (after ? .anonymous : .all))
        }
    }

    @Test("identifies a token, and answers every wrong one alike")
    func verdicts() throws {
        let control = control(.auto)
        control.update(reading())
        #expect(authenticate("a", control) == .failure(.noTokenExists))
        control.update(reading(liveToken("a", id: 7, name: "app")))
        #expect(try authenticate("a", control).get().actor == "token:app")
        #expect(authenticate("b", control) == .failure(.wrongToken))
        control.update(reading(ever: true))
        #expect(authenticate("a", control) == .failure(.wrongToken))
        #expect(control.authenticated == 1 && control.authenticationFailures == 3)
    }

    @Test("limits a connection to its token's scopes, also where none is required")
    func off() throws {
        let control = control(.off)
        control.update(reading(liveToken("a")))
        #expect(try authenticate("a", control).get().permissions == [.anonymous, .authenticated, .chat])
        #expect(authenticate("b", control) == .failure(.wrongToken))
    }

    private let away = PostgresError(.server(.insufficientPrivilege), "permission denied for table tokens")

    @Test("refuses every connection until the tokens are read, without calling a token wrong")
    func unread() throws {
        for setting in [Authentication.auto, .required] {
            let control = control(setting)
            control.readFailed(away)
            #expect(control.policy.permissionsWithoutToken == .anonymous)
            #expect(authenticate("a", control) == .failure(.tokensUnread))
            #expect(ReplyError.tokensUnread.code == .unavailable)
            #expect(control.authenticationFailures == 0)
            #expect(control.tokensProblem?.contains("SQLSTATE 42501") == true)
            #expect(control.tokensProblem?.contains("permission") == false, "the page is public")
            control.update(reading(liveToken("a", name: "app")))
            #expect(try authenticate("a", control).get().name == "app")
            #expect(authenticate("b", control) == .failure(.wrongToken))
            #expect(control.tokensProblem == nil)
        }
        let off = control(.off)
        off.readFailed(away)
        #expect(off.policy.permissionsWithoutToken == .all && off.tokensProblem == nil)
    }

    @Test("notifies of the first read, also if it finds no token")
    func firstReading() {
        let control = control(.required)
        let received = Mutex<[Bool]>([])
        _ = control.observe { policy in received.withLock { $0.append(policy.hasReadTokens) } }
        control.update(reading())
        control.update(reading())
        #expect(received.withLock { $0 } == [true])
        #expect(authenticate("a", control) == .failure(.wrongToken))
    }

    @Test("requires a token on a port that needs one, whatever is read later")
    func closedPorts() {
        let control = control(.auto)
        control.readFailed(away)
        control.requireToken()
        control.update(reading())
        #expect(control.isRequired && control.policy.hasReadTokens)
    }

    @Test("logs once that the tokens cannot be read, and once that they can again")
    func logOfMisses() {
        let log = RecordingLog()
        let control = AccessControl(.auto, connectionsPerTokenMaximum: 1, logger: log.logger)
        for _ in 0..<3 { control.readFailed(away) }
        let warning = "the tokens cannot be read; connections are refused until they can"
        #expect(log.messages(.warning) == [warning])
        for _ in 0..<3 { control.update(reading()) }
        #expect(log.count(of: "the tokens can be read again") == 1)
        control.readFailed(away)
        #expect(log.events.count == 2, "one miss of a few seconds is nothing to tell")
    }

    @Test("logs each refused token once, and again if it was valid in between")
    func logOfRefusedTokens() {
        let log = RecordingLog()
        let control = AccessControl(.auto, connectionsPerTokenMaximum: 1, logger: log.logger)
        let refused = [
            InvalidToken(id: 7, problem: "the name is wrong"), InvalidToken(id: 8, problem: "the end is wrong"),
        ]
        let bad = TokenSnapshot(tokens: [liveToken("a")], wasEverCreated: true, invalid: refused)
        for _ in 0..<3 { control.update(bad) }
        #expect(log.messages(.error).count == 2 && control.tokensRefused == 2)
        #expect(log.text.contains("7") && log.text.contains("the end is wrong"))
        control.update(reading(liveToken("a")))
        #expect(control.tokensRefused == 0)
        control.update(bad)
        #expect(log.messages(.error).count == 4)
    }

    @Test("notifies of changes, and only of changes")
    func observers() {
        let control = control(.auto)
        control.update(reading())
        let received = Mutex<[Bool]>([])
        let first = control.observe { policy in received.withLock { $0.append(policy.isRequired) } }
        #expect(!first.isRequired)
        let end = ContinuousClock.now + .seconds(600)
        control.update(reading())
        #expect(received.withLock { $0 } == [])
        control.update(reading(liveToken("a", expiresAt: end)))
        #expect(received.withLock { $0 } == [true])
        control.update(reading(liveToken("a", expiresAt: end + .milliseconds(3))))
        control.readFailed(away)
        #expect(received.withLock { $0 } == [true], "the same instant, read a moment later")
        control.update(reading(liveToken("a", expiresAt: end - .seconds(60))))
        #expect(received.withLock { $0 } == [true, true])
    }

    @Test("expires tokens while the database is unavailable, and keeps the others")
    func expiryWithoutDatabase() {
        let control = control(.auto)
        let past = ContinuousClock.now - .milliseconds(1)
        control.update(reading(liveToken("a", id: 1), liveToken("b", id: 2, expiresAt: .now + .seconds(3_600))))
        control.readFailed(away)
        #expect(control.policy.tokens.identity(ofToken: 2) != nil)
        control.update(reading(liveToken("a", id: 1), liveToken("b", id: 2, expiresAt: past)))
        control.readFailed(away)
        #expect(control.policy.tokens.identity(ofToken: 1) != nil && control.policy.tokens.identity(ofToken: 2) == nil)
    }

    @Test("limits the connections of a token, and counts a connection that changes its token once")
    func connectionCounter() throws {
        let control = control(.auto, perToken: 2)
        control.update(
            reading(
                liveToken("a", id: 1, name: "app"),
                liveToken("b", id: 2, name: "app"),
                liveToken("c", id: 3, name: "ops")
            )
        )
        let first = try authenticate("a", control).get()
        _ = try authenticate("a", control).get()
        #expect(authenticate("a", control) == .failure(.tooManyConnectionsOfToken))
        #expect(try authenticate("a", control, replacing: first).get() == first, "it has its place")
        let other = try authenticate("b", control, replacing: first).get()
        #expect(control.connectionCounter.connectionsByName == ["app": 2])
        _ = try authenticate("a", control).get()
        _ = try authenticate("c", control).get()
        #expect(control.connectionCounter.connectionsByName == ["app": 3, "ops": 1])
        #expect(authenticate("a", control, replacing: other) == .failure(.tooManyConnectionsOfToken))
        #expect(
            control.connectionCounter.connectionsByName == ["app": 3, "ops": 1],
            "who is refused keeps what he had"
        )
        control.release(other)
        #expect(control.connectionCounter.connectionsByName == ["app": 2, "ops": 1])
        #expect(control.connectionCounter.tokenIDs.sorted() == [1, 3])
    }

    @Test("reports used tokens: those that authenticated, and at first those with connections")
    func used() throws {
        let control = control(.auto)
        control.update(reading(liveToken("a", id: 1), liveToken("b", id: 2)))
        let identity = try authenticate("a", control).get()
        #expect(control.takeUsedTokens() == [1])
        #expect(control.takeUsedTokens() == [], "an open connection is reported once a minute")
        _ = authenticate("wrong", control)
        _ = try authenticate("b", control, replacing: identity).get()
        #expect(control.takeUsedTokens() == [2])
    }
}
