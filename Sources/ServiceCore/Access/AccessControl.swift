import Engine
import LineProtocol
import Logging
import Postgres
import Synchronization

/// Authenticates clients by the tokens that were last read from the database, and notifies the event loops of every
/// change.
///
/// `DatabaseMonitor` reads the tokens. While the database is unavailable, the last tokens stay valid until they expire.
/// Until the tokens were read once, every client is refused, unless no token is required.
package final class AccessControl: TokenObserver, Sendable {
    private struct State {
        var live: [LiveToken] = []
        var isRequired: Bool
        var isLoaded = false
        /// The address of a port requires tokens, even if none was ever created.
        var portRequiresTokens = false
        var policy: AccessPolicy
        var freshness = TokenFreshness(since: .now)
        /// Refused tokens that were logged.
        var refused: Set<InvalidToken> = []
        var observers: [@Sendable (AccessPolicy) -> Void] = []
        /// Tokens that were used since `takeUsedTokens` was last called.
        var used: Set<Int64> = []
        var connectedMarkedAt: ContinuousClock.Instant?
    }

    let connectionCounter = TokenConnectionCounter()
    private let setting: Authentication
    private let connectionsPerTokenMaximum: Int
    private let logger: Logger
    private let state: Mutex<State>
    private let accepted = Atomic<UInt64>(0)
    private let failed = Atomic<UInt64>(0)

    /// `auto` requires a token until the tokens are read.
    init(_ setting: Authentication, connectionsPerTokenMaximum: Int, logger: Logger) {
        self.setting = setting
        self.connectionsPerTokenMaximum = connectionsPerTokenMaximum
        self.logger = logger
        let isRequired = setting != .off
        let policy = AccessPolicy(isRequired: isRequired, tokens: TokenList(), hasReadTokens: false)
        state = Mutex(State(isRequired: isRequired, policy: policy))
    }

    /// Reads the tokens for the first time. If they cannot be read, the service starts all the same, and refuses every
    /// client until the monitor has read them; with `off` it accepts every client.
    func load(from database: DatabaseTopology) async throws {
        do {
            let reading = try await TokenSnapshot.read(database: database)
            update(reading)
            if isRequired, reading.tokens.isEmpty {
                logger.warning("a token is required and none is live; create one with headroom token create")
            }
        } catch let error as PostgresError {
            readFailed(error)
        }
    }

    /// Requires a token even if none was ever created, because the address of a port does.
    func requireToken() {
        state.withLock { $0.portRequiresTokens = true }
    }

    package var policy: AccessPolicy { state.withLock { $0.policy } }
    package var isRequired: Bool { policy.isRequired }

    /// - Parameter observer: called with every later policy, on any thread, one after the other; must not block.
    /// - Returns: the present policy.
    package func observe(_ observer: @escaping @Sendable (AccessPolicy) -> Void) -> AccessPolicy {
        state.withLock {
            $0.observers.append(observer)
            return $0.policy
        }
    }

    /// The event loops are about to end, and must not be called any more.
    package func endObservation() {
        state.withLock { $0.observers = [] }
    }

    // MARK: From the database monitor

    package func update(_ reading: TokenSnapshot) {
        logRefused(reading.invalid)
        if state.withLock({ $0.freshness.read(at: .now) }) { logger.notice("the tokens can be read again") }
        change { state in
            state.live = reading.tokens
            // A database that was restored, or failed over to a standby that lags, may have no token any more. That
            // must not open the ports: only a restart does, which checks the address again.
            let wasRequired = state.isLoaded && state.isRequired || state.portRequiresTokens
            state.isRequired = setting == .required || setting == .auto && (reading.wasEverCreated || wasRequired)
            state.isLoaded = true
        }
    }

    package func readFailed(_ error: PostgresError) {
        let warning = state.withLock { $0.freshness.failed(error, at: .now) }
        if let warning { logger.warning("\(warning)", metadata: ["error": "\(error)"]) }
        // Removes expired tokens.
        change { _ in }
    }

    /// Logs each refused token once, and again if it was valid in between.
    private func logRefused(_ refused: [InvalidToken]) {
        let known = state.withLock { state in
            defer { state.refused = Set(refused) }
            return state.refused
        }
        for token in refused where !known.contains(token) {
            logger.error(
                "a token is refused because its row in headroom.tokens is invalid; correct the row, or revoke the token",
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
                state.policy.isRequired != state.isRequired || state.policy.hasReadTokens != state.isLoaded
                    || !AccessControl.areEqual(before, state.live)
            else { return }
            if wasLoaded, state.isRequired, !state.policy.isRequired {
                logger.notice("a token is required from now on", metadata: ["tokens.live": "\(state.live.count)"])
            }
            let policy = AccessPolicy(
                isRequired: state.isRequired,
                tokens: TokenList(state.live),
                hasReadTokens: state.isLoaded
            )
            state.policy = policy
            // Observers are called under the lock, so that they get policies in order; they only hop to their event
            // loop.
            for observer in state.observers { observer(policy) }
        }
    }

    /// Ignores differences in `expiresAt` of up to a second: they come from the duration of the read.
    private static func areEqual(_ some: [LiveToken], _ others: [LiveToken]) -> Bool {
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

    /// How often tokens with open connections are marked as used.
    private static let connectedMarkInterval = Duration.seconds(60)

    package func takeUsedTokens() -> [Int64] {
        let connected = connectionCounter.tokenIDs
        return state.withLock { state in
            let now = ContinuousClock.now
            if state.connectedMarkedAt.map({ now - $0 >= AccessControl.connectedMarkInterval }) ?? true {
                state.connectedMarkedAt = now
                state.used.formUnion(connected)
            }
            defer { state.used = [] }
            return state.used.sorted()
        }
    }

    // MARK: From the event loops

    /// The identity of the credentials. The connection counts as one of its token until `release`.
    ///
    /// - Parameter identity: the connection's present identity; it is released when the connection gets another one.
    package func authenticate(
        _ credentials: Credentials,
        under policy: AccessPolicy,
        replacing identity: Identity?
    ) -> Result<Identity, ReplyError> {
        var result = policy.authenticate(credentials, at: .now)
        if case .success(let found) = result, found.tokenID != identity?.tokenID {
            if connectionCounter.add(found, atMost: connectionsPerTokenMaximum) {
                if let identity { connectionCounter.remove(identity) }
            } else {
                result = .failure(.tooManyConnectionsOfToken)
            }
        }
        switch result {
        case .success(let found):
            accepted.wrappingAdd(1, ordering: .relaxed)
            state.withLock { _ = $0.used.insert(found.tokenID) }
        // This does not count as a failed attempt: the token may be valid.
        case .failure(.tokensUnread): break
        case .failure:
            failed.wrappingAdd(1, ordering: .relaxed)
        }
        return result
    }

    /// A connection with this identity has closed, or needs it no longer.
    package func release(_ identity: Identity) {
        connectionCounter.remove(identity)
    }

    // MARK: For INFO, metrics and readiness

    /// The time since the tokens were last read; since the start if they never were.
    package var tokensAge: Duration { state.withLock { $0.freshness.age(at: .now) } }

    /// Why the tokens may be outdated; nil if they are current, or no token is ever required.
    package var tokensProblem: String? {
        setting == .off ? nil : state.withLock { $0.freshness.problem(at: .now) }
    }

    package var tokensRefused: Int { state.withLock { $0.refused.count } }

    /// Token names that are listed: the answer must be bounded.
    package static let tokenNamesMaximum = 64

    /// Open connections by the names of their tokens, in alphabetical order.
    package var listedConnections: [(token: String, connections: Int)] {
        connectionCounter.connectionsByName.sorted { $0.key < $1.key }.prefix(AccessControl.tokenNamesMaximum)
            .map { ($0.key, $0.value) }
    }

    package var authenticated: UInt64 { accepted.load(ordering: .relaxed) }
    package var authenticationFailures: UInt64 { failed.load(ordering: .relaxed) }
}
