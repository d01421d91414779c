import Engine
import LineProtocol
import Logging
import Postgres
import Synchronization

/// Decides who may ask: knows the setting, what was last read of the tokens, and tells the event loops of every change.
///
/// The database is asked by `DatabaseMonitor`. While it is away, what was known stays, and tokens go on expiring. Where
/// the tokens were never read, every client is refused, unless no token is required.
package final class AccessControl: TokenKeeper, Sendable {
    private struct State {
        var live: [LiveToken] = []
        var isRequired: Bool
        var isLoaded = false
        /// The ports may not be open without tokens.
        var mustBeRequired = false
        var policy: AccessPolicy
        var freshness = TokenFreshness(since: .now)
        /// Logged already.
        var refused: Set<RefusedToken> = []
        var observers: [@Sendable (AccessPolicy) -> Void] = []
        /// Tokens that were brought since the database was last told.
        var used: Set<Int64> = []
        var toldOfConnectionsAt: ContinuousClock.Instant?
    }

    let connectionCounter = TokenConnectionCounter()
    private let setting: Authentication
    private let connectionsPerTokenMaximum: Int
    private let logger: Logger
    private let state: Mutex<State>
    private let accepted = Atomic<UInt64>(0)
    private let failed = Atomic<UInt64>(0)

    /// Until it has read what tokens there are, `auto` requires one.
    init(_ setting: Authentication, connectionsPerTokenMaximum: Int, logger: Logger) {
        self.setting = setting
        self.connectionsPerTokenMaximum = connectionsPerTokenMaximum
        self.logger = logger
        let isRequired = setting != .off
        let policy = AccessPolicy(isRequired: isRequired, tokens: TokenList(), isKnown: false)
        state = Mutex(State(isRequired: isRequired, policy: policy))
    }

    /// Reads what tokens there are, for the first time. Where they cannot be read, the service starts all the same, and
    /// refuses every client until the monitor has read them; with `off` it accepts every client.
    func load(from databaseURL: String) async throws {
        do {
            let reading = try await TokenReading.read(databaseURL: databaseURL)
            take(reading)
            if isRequired, reading.tokens.isEmpty {
                logger.warning("a token is required and none is live; headroom token create makes one")
            }
        } catch let error as PostgresError {
            miss(error)
        }
    }

    /// The address of a port may not be open without tokens: should it turn out that there never was one, one is
    /// required nevertheless. Where the tokens were read at the start, that was looked at then.
    func requireFromNowOn() {
        state.withLock { $0.mustBeRequired = true }
    }

    package var policy: AccessPolicy { state.withLock { $0.policy } }
    package var isRequired: Bool { policy.isRequired }

    /// - Parameter observer: called with every policy that follows, on any thread, one after the other; must not block.
    /// - Returns: the policy of now.
    package func observe(_ observer: @escaping @Sendable (AccessPolicy) -> Void) -> AccessPolicy {
        state.withLock {
            $0.observers.append(observer)
            return $0.policy
        }
    }

    /// The event loops end; whoever is told now would be told in vain.
    func endObservation() {
        state.withLock { $0.observers = [] }
    }

    // MARK: From the database monitor

    package func take(_ reading: TokenReading) {
        report(reading.refused)
        if state.withLock({ $0.freshness.read(at: .now) }) { logger.notice("tokens are read again") }
        change { state in
            state.live = reading.tokens
            // A database that is restored under us, or fails over to one that is behind, may know of no token any more:
            // that opens nothing. Only a start does, which looks at the address again.
            let wasRequired = state.isLoaded && state.isRequired || state.mustBeRequired
            state.isRequired = setting == .required || setting == .auto && (reading.wasEverCreated || wasRequired)
            state.isLoaded = true
        }
    }

    package func miss(_ error: PostgresError) {
        let warning = state.withLock { $0.freshness.failed(error, at: .now) }
        if let warning { logger.warning("\(warning)", metadata: ["error": "\(error)"]) }
        // What is known expires.
        change { _ in }
    }

    /// Each once, and again when it was well meanwhile.
    private func report(_ refused: [RefusedToken]) {
        let known = state.withLock { state in
            defer { state.refused = Set(refused) }
            return state.refused
        }
        for token in refused where !known.contains(token) {
            logger.error(
                "a token is refused for what is in its row of headroom.tokens; correct the row, or revoke the token",
                metadata: ["token.id": "\(token.id)", "token.problem": "\(token.problem)"]
            )
        }
    }

    private func change(_ change: (inout State) -> Void) {
        state.withLock { state in
            let (before, wasLoaded) = (state.live, state.isLoaded)
            change(&state)
            let now = ContinuousClock.now
            state.live.removeAll { $0.expiresAt.map { now >= $0 } ?? false }
            guard
                state.policy.isRequired != state.isRequired || state.policy.isKnown != state.isLoaded
                    || !AccessControl.areSame(before, state.live)
            else { return }
            if wasLoaded, state.isRequired, !state.policy.isRequired {
                logger.notice("a token is required from now on", metadata: ["tokens.live": "\(state.live.count)"])
            }
            let policy = AccessPolicy(
                isRequired: state.isRequired,
                tokens: TokenList(state.live),
                isKnown: state.isLoaded
            )
            state.policy = policy
            // Under the lock, so that nobody hears of an older one last; observers only hop.
            for observer in state.observers { observer(policy) }
        }
    }

    /// When a token ends comes out a little different each time it is read, by how long reading took. That is no news.
    private static func areSame(_ some: [LiveToken], _ others: [LiveToken]) -> Bool {
        some.count == others.count
            && zip(some, others).allSatisfy { one, other in
                var other = other
                if let end = one.expiresAt, let otherEnd = other.expiresAt,
                    (.seconds(-1) ... .seconds(1)).contains(end - otherEnd)
                {
                    other.expiresAt = end
                }
                return one == other
            }
    }

    /// How often a token that somebody is connected with is noted as used.
    private static let connectionsToldEvery = Duration.seconds(60)

    package func takeUsed() -> [Int64] {
        let connected = connectionCounter.tokenIDs
        return state.withLock { state in
            let now = ContinuousClock.now
            if state.toldOfConnectionsAt.map({ now - $0 >= AccessControl.connectionsToldEvery }) ?? true {
                state.toldOfConnectionsAt = now
                state.used.formUnion(connected)
            }
            defer { state.used = [] }
            return state.used.sorted()
        }
    }

    // MARK: From the event loops

    /// Whose credentials these are, and a place among the connections of that token: `leave` gives it back.
    ///
    /// - Parameter identity: what the connection has; its place is given back when it gets another one.
    package func authenticate(
        _ credentials: Credentials,
        under policy: AccessPolicy,
        replacing identity: Identity?
    ) -> Result<Identity, ReplyError> {
        var verdict = policy.authenticate(credentials, at: .now)
        if case .success(let found) = verdict, found.tokenID != identity?.tokenID {
            if connectionCounter.enter(found, atMost: connectionsPerTokenMaximum) {
                if let identity { connectionCounter.leave(identity) }
            } else {
                verdict = .failure(.tooManyOfToken)
            }
        }
        switch verdict {
        case .success(let found):
            accepted.wrappingAdd(1, ordering: .relaxed)
            state.withLock { _ = $0.used.insert(found.tokenID) }
        // Not counted as a failed attempt: the token may be valid.
        case .failure(.tokensUnread): break
        case .failure:
            failed.wrappingAdd(1, ordering: .relaxed)
        }
        return verdict
    }

    package func leave(_ identity: Identity) {
        connectionCounter.leave(identity)
    }

    // MARK: For INFO, metrics and readiness

    /// How long ago the tokens were read last; since the start where they never were.
    package var tokensAge: Duration { state.withLock { $0.freshness.age(at: .now) } }

    /// Why what is known of the tokens is not to be relied on; nil where it is, and where no token is ever required.
    package var tokensProblem: String? {
        setting == .off ? nil : state.withLock { $0.freshness.problem(at: .now) }
    }

    package var tokensRefused: Int { state.withLock { $0.refused.count } }

    package var connectionsByName: [String: Int] { connectionCounter.connectionsByName }

    package var authenticated: UInt64 { accepted.load(ordering: .relaxed) }
    package var authenticationFailures: UInt64 { failed.load(ordering: .relaxed) }
}
