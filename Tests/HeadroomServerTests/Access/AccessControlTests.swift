import Engine
import LineProtocol
import Logging
import Postgres
import Synchronization
import TestSupport
import Testing

@testable import HeadroomServer

@Suite("Access control")
struct AccessControlTests {
    private let logger = Logger.silent

    private func control(_ setting: Authentication, perToken: Int = 100) -> AccessControl {
        AccessControl(setting, connectionsPerTokenMaximum: perToken, logger: logger)
    }

    private func reading(_ tokens: LiveToken..., ever: Bool? = nil) -> TokenReading {
        TokenReading(tokens: tokens, wasEverCreated: ever ?? !tokens.isEmpty)
    }

    private func authenticate(
        _ text: String,
        _ control: AccessControl,
        replacing identity: Identity? = nil
    ) -> Result<Identity, ReplyError> {
        let credentials = Credentials(name: nil, token: Secret(text))
        return control.authenticate(credentials, under: control.policy, replacing: identity)
    }

    @Test("requires a token as the setting says, and by itself from the first one on, for ever")
    func required() {
        let expected: [(Authentication, before: Bool, after: Bool)] = [
            (.auto, false, true), (.required, true, true), (.off, false, false),
        ]
        for (setting, before, after) in expected {
            let control = control(setting)
            #expect(control.isRequired == (setting != .off), "before anything is known")
            control.take(reading())
            #expect(control.isRequired == before)
            control.take(reading(liveToken("a")))
            #expect(control.isRequired == after)
            control.take(reading(ever: true))
            #expect(control.isRequired == after, "revoking the last one opens nothing")
            #expect(control.policy.permissionsWithoutToken == (after ? .anonymous : .all))
        }
    }

    @Test("knows whose token it is, and says the same to every wrong one")
    func verdicts() throws {
        let control = control(.auto)
        control.take(reading())
        #expect(authenticate("a", control) == .failure(.noTokensHere))
        control.take(reading(liveToken("a", id: 7, name: "app")))
        #expect(try authenticate("a", control).get().actor == "token:app")
        #expect(authenticate("b", control) == .failure(.wrongToken))
        control.take(reading(ever: true))
        #expect(authenticate("a", control) == .failure(.wrongToken))
        #expect(control.authenticated == 1 && control.authenticationFailures == 3)
    }

    @Test("holds who brings a token to it, also where none is required")
    func off() throws {
        let control = control(.off)
        control.take(reading(liveToken("a")))
        #expect(try authenticate("a", control).get().permissions == [.anonymous, .authenticated, .chat])
        #expect(authenticate("b", control) == .failure(.wrongToken))
    }

    private let away = PostgresError(.server(.insufficientPrivilege), "permission denied for table tokens")

    @Test("lets nobody in until the tokens were read, without taking anybody's token for a wrong one")
    func unread() throws {
        for setting in [Authentication.auto, .required] {
            let control = control(setting)
            control.miss(away)
            #expect(control.policy.permissionsWithoutToken == .anonymous)
            #expect(authenticate("a", control) == .failure(.tokensUnread))
            #expect(ReplyError.tokensUnread.code == .unavailable)
            #expect(control.authenticationFailures == 0)
            #expect(control.tokensProblem?.contains("SQLSTATE 42501") == true)
            #expect(control.tokensProblem?.contains("permission") == false, "it is shown to everybody")
            control.take(reading(liveToken("a", name: "app")))
            #expect(try authenticate("a", control).get().name == "app")
            #expect(authenticate("b", control) == .failure(.wrongToken))
            #expect(control.tokensProblem == nil)
        }
        let off = control(.off)
        off.miss(away)
        #expect(off.policy.permissionsWithoutToken == .all && off.tokensProblem == nil)
    }

    @Test("tells of the first reading, also where it finds no token")
    func firstReading() {
        let control = control(.required)
        let told = Mutex<[Bool]>([])
        _ = control.observe { policy in told.withLock { $0.append(policy.isKnown) } }
        control.take(reading())
        control.take(reading())
        #expect(told.withLock { $0 } == [true])
        #expect(authenticate("a", control) == .failure(.wrongToken))
    }

    @Test("goes on to require a token where the ports may not be open without, whatever is read later")
    func closedPorts() {
        let control = control(.auto)
        control.miss(away)
        control.requireFromNowOn()
        control.take(reading())
        #expect(control.isRequired && control.policy.isKnown)
    }

    @Test("logs once that the tokens cannot be read, and that they can be again")
    func logOfMisses() {
        let log = RecordingLog()
        let control = AccessControl(.auto, connectionsPerTokenMaximum: 1, logger: log.logger)
        for _ in 0..<3 { control.miss(away) }
        let warning = "tokens cannot be read; connections that need one are refused until they are"
        #expect(log.messages(.warning) == [warning])
        for _ in 0..<3 { control.take(reading()) }
        #expect(log.count(of: "tokens are read again") == 1)
        control.miss(away)
        #expect(log.events.count == 2, "one miss of a few seconds is nothing to tell")
    }

    @Test("logs each refused token once, and again when it was right meanwhile")
    func logOfRefusedTokens() {
        let log = RecordingLog()
        let control = AccessControl(.auto, connectionsPerTokenMaximum: 1, logger: log.logger)
        let refused = [
            RefusedToken(id: 7, problem: "the name is wrong"), RefusedToken(id: 8, problem: "the end is wrong"),
        ]
        let bad = TokenReading(tokens: [liveToken("a")], wasEverCreated: true, refused: refused)
        for _ in 0..<3 { control.take(bad) }
        #expect(log.messages(.error).count == 2 && control.tokensRefused == 2)
        #expect(log.text.contains("7") && log.text.contains("the end is wrong"))
        control.take(reading(liveToken("a")))
        #expect(control.tokensRefused == 0)
        control.take(bad)
        #expect(log.messages(.error).count == 4)
    }

    @Test("tells of changes, and only of changes")
    func observers() {
        let control = control(.auto)
        control.take(reading())
        let told = Mutex<[Bool]>([])
        let first = control.observe { policy in told.withLock { $0.append(policy.isRequired) } }
        #expect(!first.isRequired)
        let end = ContinuousClock.now + .seconds(600)
        control.take(reading())
        #expect(told.withLock { $0 } == [])
        control.take(reading(liveToken("a", expiresAt: end)))
        #expect(told.withLock { $0 } == [true])
        control.take(reading(liveToken("a", expiresAt: end + .milliseconds(3))))
        control.miss(away)
        #expect(told.withLock { $0 } == [true], "the same instant, read a moment later")
        control.take(reading(liveToken("a", expiresAt: end - .seconds(60))))
        #expect(told.withLock { $0 } == [true, true])
    }

    @Test("lets tokens end while the database is away, and none else")
    func expiryWithoutDatabase() {
        let control = control(.auto)
        let past = ContinuousClock.now - .milliseconds(1)
        control.take(reading(liveToken("a", id: 1), liveToken("b", id: 2, expiresAt: .now + .seconds(3_600))))
        control.miss(away)
        #expect(control.policy.tokens.identity(2) != nil)
        control.take(reading(liveToken("a", id: 1), liveToken("b", id: 2, expiresAt: past)))
        control.miss(away)
        #expect(control.policy.tokens.identity(1) != nil && control.policy.tokens.identity(2) == nil)
    }

    @Test("gives a token so many connections, and a connection that changes its token one place")
    func connectionCounter() throws {
        let control = control(.auto, perToken: 2)
        control.take(
            reading(
                liveToken("a", id: 1, name: "app"),
                liveToken("b", id: 2, name: "app"),
                liveToken("c", id: 3, name: "ops")
            )
        )
        let first = try authenticate("a", control).get()
        _ = try authenticate("a", control).get()
        #expect(authenticate("a", control) == .failure(.tooManyOfToken))
        #expect(try authenticate("a", control, replacing: first).get() == first, "it has its place")
        let other = try authenticate("b", control, replacing: first).get()
        #expect(control.connectionCounter.connectionsByName == ["app": 2])
        _ = try authenticate("a", control).get()
        _ = try authenticate("c", control).get()
        #expect(control.connectionCounter.connectionsByName == ["app": 3, "ops": 1])
        #expect(authenticate("a", control, replacing: other) == .failure(.tooManyOfToken))
        #expect(
            control.connectionCounter.connectionsByName == ["app": 3, "ops": 1],
            "who is refused keeps what he had"
        )
        control.leave(other)
        #expect(control.connectionCounter.connectionsByName == ["app": 2, "ops": 1])
        #expect(control.connectionCounter.tokenIDs.sorted() == [1, 3])
    }

    @Test("says which tokens were used: those that were brought, and at first those that are connected")
    func used() throws {
        let control = control(.auto)
        control.take(reading(liveToken("a", id: 1), liveToken("b", id: 2)))
        let identity = try authenticate("a", control).get()
        #expect(control.takeUsed() == [1])
        #expect(control.takeUsed() == [], "a connection that stays is told of once a minute")
        _ = authenticate("wrong", control)
        _ = try authenticate("b", control, replacing: identity).get()
        #expect(control.takeUsed() == [2])
    }
}
