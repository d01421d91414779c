import Postgres
import Synchronization
import Usage

/// A FORGET on the coordinator of a distributed database, which a lane with its session on a worker cannot execute
/// there. It has a session and a thread of its own, so that the lane goes on with other users while the coordinator is
/// silent.
final class Forgetting: Sendable {
    enum Outcome: Sendable {
        case made
        case failed(EngineError)
        /// The database refused it. It changed nothing.
        case refused(PostgresError)
    }

    private let user: UserID
    private let author: ChangeAuthor?
    private let result = Mutex<Outcome?>(nil)
    private let deadline: ContinuousClock.Instant

    /// Starts a thread that executes it.
    ///
    /// - Parameters:
    ///   - author: the author in the audit log; nil means the service's role.
    ///   - wake: woken when there is an outcome.
    init(
        _ user: UserID,
        by author: ChangeAuthor?,
        over options: ConnectionOptions,
        until deadline: ContinuousClock.Instant,
        _ wake: WakePipe
    ) {
        self.user = user
        self.author = author
        self.deadline = deadline
        startThread(named: "headroom.forget") { [self] in
            let outcome = execute(over: options)
            result.withLock { $0 = outcome }
            wake.wake()
        }
    }

    /// The outcome; nil until there is one.
    var outcome: Outcome? { result.withLock { $0 } }

    /// Whether nobody awaits the outcome any more.
    func isOver(at now: ContinuousClock.Instant) -> Bool { now > deadline && outcome != nil }

    private func execute(over options: ConnectionOptions) -> Outcome {
        let connection: DatabaseConnection
        do throws(PostgresError) {
            connection = try DatabaseConnection.connect(options)
            try connection.requireDurableCommits(deadline: deadline)
        } catch {
            return .failed(EngineError(withoutSession: error))
        }
        defer { connection.close() }
        var retries = StatementRetries(isChange: true)
        while true {
            var canBeCommitted = false
            do throws(PostgresError) {
                // It needs no receipt, because a second execution changes nothing more.
                try connection.begin(by: author, deadline: deadline)
                var parameters = Parameters()
                parameters.append(uuid: (user.high, user.low))
                _ = try connection.query(EmbeddedSQL.forgetUser, parameters, deadline: deadline)
                canBeCommitted = true
                let commit = try connection.query("commit", deadline: deadline)
                return commit.isUnreplicated ? .failed(.unknown) : .made
            } catch {
                switch retries.step(after: error) {
                case .sendAgainAfterLoss: return .failed(canBeCommitted ? .unknown : EngineError(withoutSession: error))
                case .reconnect: return .failed(EngineError(withoutSession: error))
                case .sendAgain where ContinuousClock.now < deadline:
                    // If the rollback fails, the next statement fails too.
                    try? connection.rollBack(deadline: deadline)
                case .sendAgain, .replaceReceipt, .reject: return .refused(error)
                }
            }
        }
    }
}

/// The FORGETs of a lane. Only the lane's thread uses them.
final class Forgettings {
    private var underWay: [ReturnAddress: (user: UserID, forgetting: Forgetting)] = [:]

    subscript(address: ReturnAddress) -> Forgetting? { underWay[address]?.forgetting }

    func start(_ forgetting: Forgetting, for request: UnbatchedRequest) {
        underWay[request.returnAddress] = (request.user, forgetting)
    }

    func remove(_ address: ReturnAddress) {
        underWay[address] = nil
    }

    /// The users whose FORGET has an outcome that was not delivered.
    func finishedUsers() -> [UserID] {
        guard !underWay.isEmpty else { return [] }
        let now = ContinuousClock.now
        underWay = underWay.filter { !$0.value.forgetting.isOver(at: now) }
        return underWay.values.filter { $0.forgetting.outcome != nil }.map(\.user)
    }
}
