import Logging
import Postgres
import Usage

/// A lane's connection to the database. Reconnects after a loss, and keeps the plans and the key and number of the
/// lane's receipt. Used by the lane's thread alone.
final class LaneConnection {
    private let session: ReconnectingSession<Setup>
    private let database: DatabaseTopology
    private var lease: PrimaryLease
    private let logger: Logger
    private(set) var catalog = PlanCatalog.empty
    private let words: CurrentWords
    /// The revision of the words that the newest statement has seen, where it is another than that of `words`.
    private var outdatedWords: Int32?
    /// The database's clock when the connection was opened. Nil once `takeObservedInstant` has returned it.
    private var observedInstant: Instant?

    /// The key of the lane's receipt. The lane begins with a new one, and takes another when the receipt is lost or
    /// when a batch of unknown outcome is given up. If that batch is committed later, it only changes an unused
    /// receipt.
    private(set) var receipt = ReceiptID.random()
    /// The number of the newest statement that was sent to change something: a batch, or one change such as SETPLAN.
    private(set) var receiptNumber: Int64 = 0

    private struct Setup {
        /// The number in the receipt: of the newest statement that was committed.
        var receiptNumber: Int64
        var catalog: PlanCatalog
        var observedAt: Instant
    }

    init(
        options: ConnectionOptions,
        primaryLease: Duration,
        words: CurrentWords,
        wake: WakePipe,
        logger: Logger
    ) {
        self.words = words
        database = options.database
        lease = PrimaryLease(length: primaryLease)
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
    /// When to call `advance` again. Nil while the connection is open, and while it is being opened: the thread is
    /// woken when that ends.
    var retryAt: ContinuousClock.Instant? { session.retryAt }
    /// When the database became unavailable; nil while it is available.
    var downSince: ContinuousClock.Instant? { session.downSince }
    var reconnects: Int { session.reconnects }
    /// The answer to a request that waited for a connection until its deadline.
    var failure: EngineError { session.lastFailure.map { EngineError(withoutSession: $0) } ?? .unreachable }

    func takeObservedInstant() -> Instant? {
        defer { observedInstant = nil }
        return observedInstant
    }

    func nextNumber() -> Int64 {
        receiptNumber += 1
        return receiptNumber
    }

    /// Makes the newest number available again, because no statement took effect with it.
    func takeBack(_ number: Int64) {
        assert(number == receiptNumber)
        receiptNumber = number - 1
    }

    /// Opens the connection when it is time, in the background. Never waits.
    func advance() {
        let (database, receipt) = (database, receipt)
        let setup = session.advance { connection, deadline throws(PostgresError) in
            try LaneConnection.setUp(connection, database, receipt, deadline: deadline)
        }
        guard let setup else { return }
        lease.end()
        // The receipt has `receiptNumber` if the newest statement was committed, else `receiptNumber - 1`. With any
        // other number it is not this lane's newest receipt.
        guard (receiptNumber - 1...receiptNumber).contains(setup.receiptNumber) else { return loseReceipt() }
        catalog = setup.catalog
        observedInstant = setup.observedAt
        refreshWords(seen: nil)
    }

    private static func setUp(
        _ connection: Connection,
        _ database: DatabaseTopology,
        _ receipt: ReceiptID,
        deadline: ContinuousClock.Instant
    ) throws(PostgresError) -> Setup {
        let observedAt = try readServer(connection, database, deadline: deadline)
        try connection.requireDurableCommits(deadline: deadline)
        var parameters = Parameters()
        parameters.append(uuid: receipt.uuid)
        let opened = try connection.query(EmbeddedSQL.openLane, parameters, deadline: deadline)
        let plans = try connection.query(EmbeddedSQL.readPlans, deadline: deadline)
        return Setup(
            receiptNumber: try opened.int64(0, 0),
            catalog: try PlanCatalog(plans),
            observedAt: observedAt
        )
    }

    /// - Returns: the server's clock.
    /// - Throws: if another instance has noted on the server that it was superseded.
    private static func readServer(
        _ connection: Connection,
        _ database: DatabaseTopology,
        deadline: ContinuousClock.Instant
    ) throws(PostgresError) -> Instant {
        let timeline = connection.server.timeline
        var parameters = Parameters()
        parameters.append(int64: timeline?.systemIdentifier)
        let row = try connection.query(EmbeddedSQL.readServer, parameters, deadline: deadline).firstRow
        if let timeline, let newest = try row.int64OrNil("newest_timeline") {
            database.note(Timeline(systemIdentifier: timeline.systemIdentifier, number: UInt32(clamping: newest)))
            if let successor = database.successor(of: timeline) { throw .superseded(timeline, by: successor) }
        }
        database.waitsForStandby = try row.bool("waits_for_standby")
        return try row.instant("observed_at")
    }

    // MARK: The primary

    /// Whether an answer that needed no commit may be delivered only after one, because the server may have been
    /// superseded meanwhile.
    func mustConfirmPrimary(at now: ContinuousClock.Instant) -> Bool {
        database.waitsForStandby && !lease.isValid(at: now)
    }

    /// - Parameter sentAt: when a commit was sent that succeeded without the warning that no standby has confirmed it.
    func confirmPrimary(sentAt: ContinuousClock.Instant) {
        lease.confirm(sentAt: sentAt)
    }

    /// Closes a connection that broke or cannot be trusted any more. `advance` opens the next one.
    func drop(_ error: PostgresError) {
        session.drop(error)
    }

    /// Starts a new receipt, because the database does not have the lane's newest statements. It was restored from a
    /// backup, a standby without them was promoted, or the receipt was pruned while the lane was idle for days.
    func loseReceipt() {
        guard session.connection != nil else { return }
        logger.warning("the database does not know this lane's receipt; going on with a new one")
        startNewReceipt()
        session.close()
    }

    /// Gives up a statement of unknown outcome, with its receipt and its connection.
    func abandon() {
        startNewReceipt()
        drop(PostgresError(.timedOut, "no answer within the deadline; the connection was given up"))
    }

    private func startNewReceipt() {
        receipt = .random()
        receiptNumber = 0
    }

    /// Reads the plans again if a usage row was written with another revision of them. Nil for a row without one.
    func refreshCatalog(ifOlderThan revision: Int32?) {
        guard let revision, catalog.revision != revision, let connection else { return }
        // Answers of committed messages wait for it.
        let deadline = ContinuousClock.now + .milliseconds(500)
        do throws(PostgresError) {
            catalog = try PlanCatalog(connection.query(EmbeddedSQL.readPlans, deadline: deadline))
        } catch {
            // The counts of this batch are committed and correct. Only its answers show the plans as they were before.
            logger.warning("plans could not be read", metadata: ["error": "\(error)"])
            drop(error)
        }
    }

    /// Remembers that answers which are computed now need words of this revision.
    func noteWords(_ revision: Int32?) {
        if let revision, words.isOutdated(revision) { outdatedWords = revision }
    }

    /// Reads the words that answers to be delivered now need.
    func refreshWords() {
        guard let seen = outdatedWords else { return }
        outdatedWords = nil
        refreshWords(seen: seen)
    }

    private func refreshWords(seen: Int32?) {
        guard let connection else { return }
        do throws(PostgresError) {
            // Answers of committed messages wait for it.
            try words.refresh(seen: seen, over: connection, timeout: .milliseconds(500), logger)
        } catch {
            logger.warning("words could not be read; answers have the last ones", metadata: ["error": "\(error)"])
            if !connection.isUsable { drop(error) }
        }
    }

    func close() {
        session.close()
    }
}

/// The key of a lane's receipt.
struct ReceiptID: Equatable, Sendable {
    var high: UInt64
    var low: UInt64

    static func random() -> ReceiptID { ReceiptID(high: .random(in: 0 ... .max), low: .random(in: 0 ... .max)) }

    var uuid: (high: UInt64, low: UInt64) { (high, low) }
}
