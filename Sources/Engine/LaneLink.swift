import Logging
import Postgres
import Usage

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// A lane's connection to the database, across losses: opens it, prepares the statements, opens the lane's receipt, and
/// opens it again when it breaks. Used by the lane's thread alone.
///
/// Opening happens on a thread of its own, because it may take as long as the connect timeout, and the lane has
/// deadlines to keep meanwhile.
final class LaneLink {
    private enum State {
        /// Can transition to: opening.
        case closed(retryAt: ContinuousClock.Instant)
        /// Can transition to: open, closed.
        case opening(Handover<Opened>)
        /// Can transition to: closed.
        case open(Connection)
    }

    private var state = State.closed(retryAt: .now)
    private var backoff = Backoff()
    private var generator = SystemRandomNumberGenerator()
    private let options: ConnectionOptions
    private let wake: WakePipe
    private let logger: Logger
    private(set) var catalog = PlanCatalog.empty
    /// The month by the database's clock when the link was opened, until somebody took note.
    private var observedMonth: BillingPeriod?
    /// When the database was last seen to be away; nil while it is there.
    private(set) var downSince: ContinuousClock.Instant?
    private(set) var reconnects = 0
    /// SQLSTATE of the newest failure, where the server gave one.
    private var toldRefusal: SQLState?

    /// The receipt's name, new with each process, and again when a batch had to be given up whose fate is unknown: what
    /// may still become of it then touches a receipt that nobody uses any more.
    private(set) var lane = LaneLink.newName()
    /// Number of the newest batch or change that was sent.
    private(set) var number: Int64 = 0

    init(options: ConnectionOptions, wake: WakePipe, logger: Logger) {
        self.options = options
        self.wake = wake
        self.logger = logger
    }

    private static func newName() -> LaneName {
        LaneName(high: UInt64.random(in: 0 ... .max), low: UInt64.random(in: 0 ... .max))
    }

    var connection: Connection? {
        if case .open(let connection) = state { connection } else { nil }
    }

    /// When to look again; nil while open or opening, where the wake pipe tells.
    var retryAt: ContinuousClock.Instant? {
        if case .closed(let retryAt) = state { retryAt } else { nil }
    }

    func takeObservedMonth() -> BillingPeriod? {
        defer { observedMonth = nil }
        return observedMonth
    }

    func nextNumber() -> Int64 {
        number += 1
        return number
    }

    /// Nothing was done under the newest number: the next statement gets it again.
    func takeBack(_ number: Int64) {
        assert(number == self.number)
        self.number = number - 1
    }

    /// Moves the link along: starts to open it when it is time, and takes the connection when it is there. Never waits.
    func advance() {
        switch state {
        case .open:
            break
        case .closed(let retryAt):
            guard ContinuousClock.now >= retryAt else { return }
            let handover = Handover<Opened>()
            state = .opening(handover)
            let (options, lane, wake) = (options, lane, wake)
            startThread(named: "headroom.connect") {
                handover.put(Result { () throws(PostgresError) in try LaneLink.open(options, lane: lane) })
                wake.wake()
            }
        case .opening(let handover):
            switch handover.take() {
            case nil:
                break
            case .success(let opened):
                guard (number - 1...number).contains(opened.receiptNumber) else { return lose(opened.connection) }
                state = .open(opened.connection)
                catalog = opened.catalog
                observedMonth = opened.month
                backoff.reset()
                if let since = downSince {
                    reconnects += 1
                    let seconds = ContinuousClock.now - since
                    logger.notice("database is back", metadata: ["database.away": "\(seconds)"])
                }
                downSince = nil
            case .failure(let error):
                fail(error)
            }
        }
    }

    /// The connection broke or cannot be trusted any more; the next one is opened at once, and then ever less often.
    func drop(_ error: PostgresError) {
        connection?.close()
        fail(error)
    }

    private func fail(_ error: PostgresError) {
        let now = ContinuousClock.now
        if downSince == nil {
            downSince = now
            logger.warning("database is away", metadata: ["error": "\(error)"])
        } else if let refusal = error.sqlState, refusal != toldRefusal {
            // It is there, but will not have us: a role that was revoked, say, which somebody has to mend.
            logger.warning("database refuses", metadata: ["error": "\(error)"])
        } else {
            logger.debug("database is still away", metadata: ["error": "\(error)"])
        }
        toldRefusal = error.sqlState
        state = .closed(retryAt: now + backoff.pause(using: &generator))
    }

    /// This database does not remember our newest batches: it was restored, or a standby was promoted that had not got
    /// them. Or the receipt was swept away while the lane was idle for days. It is of no use then; the lane goes on with
    /// a new one.
    private func lose(_ connection: Connection) {
        logger.warning("the database does not know this lane's receipt; going on with a new one")
        connection.close()
        lane = LaneLink.newName()
        number = 0
        state = .closed(retryAt: .now)
    }

    /// A statement met a receipt that was not ours any more.
    func loseReceipt() {
        if let connection { lose(connection) }
    }

    /// Gives up a batch whose fate is unknown, with its receipt and its connection.
    func abandon() {
        lane = LaneLink.newName()
        number = 0
        drop(PostgresError(.timedOut, "no answer within the deadline; the connection was given up"))
    }

    /// Reads the plans again when a row was written at another revision than the one at hand.
    func refreshCatalog(ifOlderThan revision: Int32, deadline: ContinuousClock.Instant) {
        guard catalog.revision != revision, let connection else { return }
        do throws(PostgresError) {
            catalog = PlanCatalog(try connection.query(EmbeddedSQL.readPlans, deadline: deadline))
        } catch {
            // The answers at hand are committed and stay true; they show the plan's percentages as they were.
            logger.warning("plans could not be read", metadata: ["error": "\(error)"])
            drop(error)
        }
    }

    func close() {
        connection?.close()
        state = .closed(retryAt: .now)
    }

    // MARK: Opening

    private struct Opened {
        /// The newest number that the database knows of.
        var receiptNumber: Int64
        var connection: Connection
        var catalog: PlanCatalog
        var month: BillingPeriod
    }

    private static func open(
        _ options: ConnectionOptions,
        lane: LaneName
    ) throws(PostgresError) -> Opened {
        let deadline = ContinuousClock.now + options.connectTimeout
        let connection = try Connection.connect(options)
        do throws(PostgresError) {
            try connection.answerOnlyWhatIsDurable(deadline: deadline)
            for statement in PreparedStatement.allCases {
                try connection.prepare(statement.rawValue, statement.sql, deadline: deadline)
            }
            var parameters = Parameters()
            parameters.append(uuid: lane.uuid)
            let receipt = try connection.query(EmbeddedSQL.openLane, parameters, deadline: deadline)
            let plans = try connection.query(EmbeddedSQL.readPlans, deadline: deadline)
            let now = try connection.query("select headroom.now()", deadline: deadline)
            let date = Instant(microsecondsSince1970: try now.timestamp(0, 0)).date
            return Opened(
                receiptNumber: try receipt.int64(0, 0),
                connection: connection,
                catalog: PlanCatalog(plans),
                month: BillingPeriod(year: date.year, month: date.month)
            )
        } catch {
            connection.close()
            throw error
        }
    }
}

/// What a lane's receipt is found by.
struct LaneName: Equatable, Sendable {
    var high: UInt64
    var low: UInt64

    var uuid: (high: UInt64, low: UInt64) { (high, low) }
}

/// Statements that each connection prepares.
enum PreparedStatement: String, CaseIterable {
    case countBatch = "count_batch"
    case countKeyedBatch = "count_keyed_batch"
    case performBatch = "perform_batch"
    case readReceipt = "read_receipt"
    case touchReceipt = "touch_receipt"
    case readBatch = "read_batch"
    case readKeys = "read_keys"

    var sql: String {
        switch self {
        case .countBatch: EmbeddedSQL.countBatch
        case .countKeyedBatch: EmbeddedSQL.countKeyedBatch
        case .performBatch: EmbeddedSQL.performBatch
        case .readReceipt: EmbeddedSQL.readReceipt
        case .touchReceipt: EmbeddedSQL.touchReceipt
        case .readBatch: EmbeddedSQL.readBatch
        case .readKeys: EmbeddedSQL.readKeys
        }
    }
}

/// Session settings of a lane.
enum LaneSession {
    /// - Parameters:
    ///   - requestTimeout: a statement is cancelled somewhat before it, so that the answer can be "nothing was counted"
    ///     instead of "unknown".
    static func settings(unknownUsers: UnknownUsers, requestTimeout: Duration) -> [(String, String)] {
        [
            // The plans that would lock rows in another order than that of the arrays. See
            // docs/decisions/0003-lock-order.md.
            ("enable_hashjoin", "off"),
            ("enable_mergejoin", "off"),
            ("enable_seqscan", "off"),
            ("enable_bitmapscan", "off"),
            ("max_parallel_workers_per_gather", "0"),
            // One plan for every size of batch, made once.
            ("plan_cache_mode", "force_generic_plan"),
            // Disabled plan types cost 10^10 each, which looks worth compiling to the planner and never is.
            ("jit", "off"),
            ("lock_timeout", milliseconds(requestTimeout / 4)),
            ("statement_timeout", milliseconds(requestTimeout * 3 / 4)),
            ("idle_in_transaction_session_timeout", milliseconds(requestTimeout * 2)),
            ("headroom.unknown_users", unknownUsers.rawValue),
        ]
    }

    private static func milliseconds(_ duration: Duration) -> String {
        let (seconds, attoseconds) = duration.components
        return "\(max(1, seconds * 1_000 + attoseconds / 1_000_000_000_000_000))"
    }
}

extension Connection {
    /// An answer is durable before it is sent: never weaker than on, whatever the database's default.
    func answerOnlyWhatIsDurable(deadline: ContinuousClock.Instant) throws(PostgresError) {
        try execute(
            """
            select set_config('synchronous_commit', 'on', false)
            where current_setting('synchronous_commit') in ('off', 'local')
            """,
            deadline: deadline
        )
    }
}
