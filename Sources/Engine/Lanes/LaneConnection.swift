import Logging
import Postgres
import Usage

/// A lane's connection to the database, with the lane's receipt and the plans: opened again after a loss. Used by the
/// lane's thread alone.
final class LaneConnection {
    private let session: ReconnectingSession<Setup>
    private let logger: Logger
    private(set) var catalog = PlanCatalog.empty
    /// The month by the database's clock when the connection was opened, until `takeObservedMonth`.
    private var observedMonth: BillingPeriod?

    /// The receipt's name, new with each process, and again when a batch of unknown fate is given up: such a batch can then
    /// only change a receipt that is no longer used.
    private(set) var lane = LaneName.random()
    /// Number of the newest batch or change that was sent.
    private(set) var number: Int64 = 0

    private struct Setup {
        /// The newest number that the database has.
        var receiptNumber: Int64
        var catalog: PlanCatalog
        var month: BillingPeriod
    }

    init(options: ConnectionOptions, wake: WakePipe, logger: Logger) {
        session = ReconnectingSession(
            options: options,
            statements: PreparedQuery.lane,
            wake: wake,
            reportsOutages: true,
            logger: logger
        )
        self.logger = logger
    }

    var connection: Connection? { session.connection }
    /// When to call `advance` again; nil while open or opening, which ends with a wake.
    var retryAt: ContinuousClock.Instant? { session.retryAt }
    /// When the database became unavailable; nil while it is available.
    var downSince: ContinuousClock.Instant? { session.downSince }
    var reconnects: Int { session.reconnects }

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

    /// Opens the connection when it is time, in the background. Never waits.
    func advance() {
        guard session.connection == nil else { return }
        let lane = lane
        let setup = session.advance { connection, deadline throws(PostgresError) in
            try LaneConnection.setUp(connection, lane, deadline: deadline)
        }
        guard let setup else { return }
        guard (number - 1...number).contains(setup.receiptNumber) else { return loseReceipt() }
        catalog = setup.catalog
        observedMonth = setup.month
    }

    private static func setUp(
        _ connection: Connection,
        _ lane: LaneName,
        deadline: ContinuousClock.Instant
    ) throws(PostgresError) -> Setup {
        try connection.requireDurableCommits(deadline: deadline)
        var parameters = Parameters()
        parameters.append(uuid: lane.uuid)
        let receipt = try connection.query(EmbeddedSQL.openLane, parameters, deadline: deadline)
        let plans = try connection.query(EmbeddedSQL.readPlans, deadline: deadline)
        let now = try connection.query("select headroom.now()", deadline: deadline)
        let date = Instant(microsecondsSince1970: try now.timestamp(0, 0)).date
        return Setup(
            receiptNumber: try receipt.int64(0, 0),
            catalog: try PlanCatalog(plans),
            month: BillingPeriod(year: date.year, month: date.month)
        )
    }

    /// The connection broke or cannot be trusted any more. The next one is opened soon.
    func drop(_ error: PostgresError) {
        session.drop(error)
    }

    /// The database does not have this lane's newest batches: it was restored, or a standby was promoted that had not
    /// received them. Or the receipt was pruned while the lane was idle for days. The lane continues with a new receipt.
    func loseReceipt() {
        guard session.connection != nil else { return }
        logger.warning("the database does not know this lane's receipt; going on with a new one")
        startNewReceipt()
        session.close()
    }

    /// Gives up a batch of unknown fate, with its receipt and its connection.
    func abandon() {
        startNewReceipt()
        drop(PostgresError(.timedOut, "no answer within the deadline; the connection was given up"))
    }

    private func startNewReceipt() {
        lane = .random()
        number = 0
    }

    /// Reads the plans again if a row was written at another revision.
    func refreshCatalog(ifOlderThan revision: Int32, deadline: ContinuousClock.Instant) {
        guard catalog.revision != revision, let connection else { return }
        do throws(PostgresError) {
            catalog = try PlanCatalog(connection.query(EmbeddedSQL.readPlans, deadline: deadline))
        } catch {
            // The answers of this batch are committed and stay true; they show the plan's percentages as they were.
            logger.warning("plans could not be read", metadata: ["error": "\(error)"])
            drop(error)
        }
    }

    func close() {
        session.close()
    }
}

/// The key of a lane's receipt.
struct LaneName: Equatable, Sendable {
    var high: UInt64
    var low: UInt64

    static func random() -> LaneName { LaneName(high: .random(in: 0 ... .max), low: .random(in: 0 ... .max)) }

    var uuid: (high: UInt64, low: UInt64) { (high, low) }
}
