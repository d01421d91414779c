import Logging
import Postgres
import Usage

/// A lane's connection to the database. It reconnects after a loss, and keeps the plans and the lane's receipts. Only
/// the lane's thread uses it.
final class LaneConnection {
    private let session: ReconnectingSession<Setup>
    private var options: ConnectionOptions
    private let placements: CurrentPlacements
    /// The generation of the placements in which the lane has looked up its home.
    private var placementsGeneration = -1
    private var lease: PrimaryLease
    private let logger: Logger
    private(set) var catalog = PlanCatalog.empty
    private let words: CurrentWords
    private let currentBuckets: CurrentBuckets
    private let lane: Int
    private let requestTimeout: Duration
    /// The revision of the words that the newest statement has seen; nil if `words` has it.
    private var outdatedWords: Int32?
    /// The database's clock when the connection was opened; nil once `takeObservedInstant` has returned it.
    private var observedInstant: Instant?

    /// The lane's receipt in each bucket that it has used. While there is a connection, the database has them.
    private var receipts: [Bucket: LaneReceipt] = [:]

    private struct Setup {
        /// The receipts, each with the number of the newest statement that was committed.
        var receipts: [Bucket: LaneReceipt]
        var catalog: PlanCatalog
        var observedAt: Instant
    }

    init(
        options: ConnectionOptions,
        primaryLease: Duration,
        words: CurrentWords,
        buckets: CurrentBuckets = CurrentBuckets(),
        placements: CurrentPlacements? = nil,
        lane: Int = 0,
        requestTimeout: Duration = .seconds(2),
        wake: WakePipe,
        logger: Logger
    ) {
        self.options = options
        self.placements = placements ?? CurrentPlacements(options.database)
        self.words = words
        currentBuckets = buckets
        self.lane = lane
        self.requestTimeout = requestTimeout
        lease = PrimaryLease(length: primaryLease)
        session = ReconnectingSession(
            options: options,
            statements: PreparedQuery.lane,
            wake: wake,
            reportsOutages: true,
            latenessMaximum: requestTimeout,
            logger: logger
        )
        self.logger = logger
    }

    var connection: DatabaseConnection? { session.connection }
    /// When to call `advance` again. Nil while the connection is open, and while it is being opened: the thread is
    /// woken when that ends.
    var retryAt: ContinuousClock.Instant? { session.retryAt }
    /// A socket; call `advance` also when it is readable. -1: there is none.
    var lateSocket: Int32 { session.lateSocket }
    /// When the database became unavailable; nil while it is available.
    var downSince: ContinuousClock.Instant? { session.downSince }
    var reconnects: Int { session.reconnects }
    /// The answer to a request that waited for a connection until its deadline.
    var failure: EngineError {
        judged(session.isLate ? .late : session.lastFailure.map { EngineError(withoutSession: $0) } ?? .unreachable)
    }

    /// The error for a request whose deadline has passed: `error`, or one which says that the database (in a
    /// distributed database, the coordinator) answers no session of the process.
    func judged(_ error: EngineError) -> EngineError {
        guard error == .late || error == .unknown, placements.database.silence.isSilent else { return error }
        return error == .late ? .unreachable : .unanswered
    }

    func takeObservedInstant() -> Instant? {
        defer { observedInstant = nil }
        return observedInstant
    }

    /// Opens the connection when it is time, in the background. It never waits.
    func advance() {
        moveHome()
        let setup = session.advance { makeSetUp() }
        if connection != nil, hasBriefLockTimeout, !waitsBriefly { endBriefLockTimeout() }
        guard let setup else { return }
        hasBriefLockTimeout = false
        lease.end()
        var isLost = false
        for (bucket, opened) in setup.receipts {
            if let receipt = self.receipts[bucket], !receipt.mayHave(opened.number) {
                self.receipts[bucket] = nil
                isLost = true
            } else if self.receipts[bucket] == nil {
                self.receipts[bucket] = opened
            }
        }
        if isLost { return reopenWithoutReceipt() }
        catalog = setup.catalog
        observedInstant = setup.observedAt
        refreshWords(seen: nil)
    }

    private func makeSetUp() -> ReconnectingSession<Setup>.SetUp {
        let (database, receipts) = (options.database, receipts)
        let (buckets, placements, lane) = (currentBuckets, placements, lane)
        return { connection, deadline throws(PostgresError) in
            let observedAt = try LaneConnection.readServer(
                connection,
                database,
                isCoordinator: database === placements.database,
                deadline: deadline
            )
            if database === placements.database { try placements.refresh(over: connection, deadline: deadline) }
            buckets.note(try connection.currentBuckets(deadline: deadline))
            let first = placements.current.firstBucket(ofLane: lane, by: buckets.current)
            return try LaneConnection.setUp(connection, receipts, first: first, observedAt, deadline: deadline)
        }
    }

    /// The options of sessions on the coordinator, for changes of tables that are there alone; nil if the lane's
    /// session is there.
    var coordinatorOptions: ConnectionOptions? {
        guard options.database !== placements.database else { return nil }
        var options = options
        options.database = placements.database
        return options
    }

    /// Closes the session if the lane's buckets have moved to another server.
    private func moveHome() {
        let generation = placements.generation
        guard generation != placementsGeneration else { return }
        placementsGeneration = generation
        let home = placements.home(ofLane: lane)
        guard home !== options.database else { return }
        logger.info("the lane goes to another server", metadata: ["database": "\(home)"])
        options.database = home
        session.move(to: options)
    }

    private static func setUp(
        _ connection: DatabaseConnection,
        _ receipts: [Bucket: LaneReceipt],
        first: Bucket,
        _ observedAt: Instant,
        deadline: ContinuousClock.Instant
    ) throws(PostgresError) -> Setup {
        try connection.requireDurableCommits(deadline: deadline)
        var opened = receipts
        // One receipt is opened now, because that shows that the server takes writes. The others are opened when they
        // are used.
        if opened.isEmpty { opened[first] = .new() }
        try open(&opened, over: connection, deadline: deadline)
        let plans = try connection.query(EmbeddedSQL.readPlans, deadline: deadline)
        return Setup(receipts: opened, catalog: try PlanCatalog(plans), observedAt: observedAt)
    }

    /// Reads the server's clock, and what it knows of its timeline.
    ///
    /// - Throws: `superseded` if another instance has noted on the server that it was superseded.
    private static func readServer(
        _ connection: DatabaseConnection,
        _ database: DatabaseTopology,
        isCoordinator: Bool,
        deadline: ContinuousClock.Instant
    ) throws(PostgresError) -> Instant {
        let timeline = connection.server.timeline
        guard isCoordinator else {
            let row = try connection.query(EmbeddedSQL.readWorker, deadline: deadline).firstRow
            database.waitsForStandby = try row.bool("waits_for_standby")
            return try row.instant("observed_at")
        }
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

    /// Whether an answer that needed no commit must wait for a commit, because the server may have been superseded
    /// since the last one.
    func mustConfirmPrimary(at now: ContinuousClock.Instant) -> Bool {
        options.database.waitsForStandby && !lease.isValid(at: now)
    }

    /// Notes that the server was the primary.
    ///
    /// - Parameter sentAt: when a commit was sent that succeeded without the warning that no standby has confirmed it.
    func confirmPrimary(sentAt: ContinuousClock.Instant) {
        lease.confirm(sentAt: sentAt)
    }

    // MARK: Locks

    /// Whether statements wait only briefly for a lock.
    private(set) var waitsBriefly = false
    /// Whether the session has the brief timeout. It keeps it after `waitBriefly` if the session was late then.
    private var hasBriefLockTimeout = false
    private var briefWaits = 0
    /// The most brief waits in a row. Together they take as long as one that is not brief.
    private static let briefWaitsMaximum = 10

    /// Counts a brief wait that was in vain. Returns whether another may follow.
    func mayWaitAgain() -> Bool {
        briefWaits += 1
        return briefWaits < LaneConnection.briefWaitsMaximum
    }

    /// Executes `work` with statements that wait only briefly for a lock. If the connection is lost meanwhile, the
    /// statements over the next one wait as usual.
    func waitBriefly(_ work: () -> Void) {
        hasBriefLockTimeout = true
        setLockTimeout(LaneSettings.briefLockTimeout(requestTimeout))
        (waitsBriefly, briefWaits) = (true, 0)
        work()
        waitsBriefly = false
        endBriefLockTimeout()
    }

    private func endBriefLockTimeout() {
        setLockTimeout(LaneSettings.lockTimeout(requestTimeout))
        if connection != nil { hasBriefLockTimeout = false }
    }

    private func setLockTimeout(_ timeout: Duration) {
        guard let connection else { return }
        do throws(PostgresError) {
            // The timeout is at least 1 ms, because 0 turns it off.
            let milliseconds = max(1, timeout.milliseconds)
            try connection.execute("set lock_timeout = \(milliseconds)", deadline: .now + requestTimeout / 4)
        } catch {
            drop(error)
        }
    }

    /// Closes a connection that broke or cannot be trusted any more. `advance` opens the next one. After `.timedOut`
    /// the connection is used again if its statement ends within another request timeout.
    func drop(_ error: PostgresError) {
        if session.connection != nil { placements.doubt() }
        session.drop(error)
    }

    // MARK: Receipts

    /// The id of the lane's receipt in a bucket; nil if none is open.
    func receipt(in bucket: Bucket) -> ReceiptID? { receipts[bucket]?.id }

    /// The connection; nil unless the lane's receipt in a bucket is open.
    func connection(withReceiptIn bucket: Bucket) -> DatabaseConnection? { receipts[bucket] == nil ? nil : connection }

    /// The connection, after opening the lane's receipt in a bucket if necessary; nil if that fails.
    func openReceipt(in bucket: Bucket, until deadline: ContinuousClock.Instant) -> DatabaseConnection? {
        guard let connection, receipts[bucket] == nil else { return connection }
        var opened: [Bucket: LaneReceipt] = [bucket: .new()]
        do throws(PostgresError) {
            try LaneConnection.open(&opened, over: connection, deadline: deadline)
            receipts[bucket] = opened[bucket]
            return connection
        } catch {
            drop(error)
            return nil
        }
    }

    /// Opens receipts in one round trip, and reads their numbers.
    private static func open(
        _ receipts: inout [Bucket: LaneReceipt],
        over connection: DatabaseConnection,
        deadline: ContinuousClock.Instant
    ) throws(PostgresError) {
        // Receipts are opened in one order, because opening deletes receipts of ended processes, which locks them.
        let ordered = receipts.sorted { $0.key < $1.key }
        try connection.sendPipeline { pipeline throws(PostgresError) in
            for (bucket, receipt) in ordered {
                let parameters = ReceiptStatement.parameters(bucket, lane: receipt.id)
                try pipeline.send(prepared: ReceiptStatement.open.name, parameters)
            }
        }
        guard let results = try connection.awaitResults(until: deadline) else {
            connection.cancel()
            throw PostgresError(.timedOut, "no answer from the database within the deadline")
        }
        for ((bucket, _), result) in zip(ordered, results) { receipts[bucket]?.number = try result.int64(0, 0) }
    }

    /// Forgets the receipts of buckets that other lanes have now, so that reconnecting depends on no other server. Call
    /// this between two batches, when no statement's outcome is unknown.
    func keepReceipts(of buckets: Set<Bucket>) {
        receipts = receipts.filter { buckets.contains($0.key) }
    }

    /// The number of the next statement that changes something in a bucket, whose receipt is open.
    func nextNumber(in bucket: Bucket) -> Int64 {
        receipts[bucket]?.number += 1
        return receipts[bucket]?.number ?? 0
    }

    /// Makes the newest number available again, because no statement took effect with it.
    func takeBack(_ number: Int64, in bucket: Bucket) {
        assert(number == receipts[bucket]?.number)
        receipts[bucket]?.number = number - 1
    }

    /// Gives up a receipt, because the database does not have the lane's newest statements: it was restored from a
    /// backup, a standby without them was promoted, or the receipt was pruned while the lane was idle for days.
    func loseReceipt(in bucket: Bucket) {
        guard session.connection != nil else { return }
        receipts[bucket] = nil
        reopenWithoutReceipt()
    }

    private func reopenWithoutReceipt() {
        logger.warning("the database does not know this lane's receipt; going on with a new one")
        session.close()
    }

    /// Gives up a statement of unknown outcome, with its receipt. If the statement is committed later, it only changes
    /// an unused receipt.
    func abandon(in bucket: Bucket) {
        receipts[bucket] = nil
        drop(PostgresError(.timedOut, "no answer from the database within the deadline"))
    }

    // MARK: What answers are computed with

    /// The newest map of buckets that the process has read.
    var buckets: BucketMap { currentBuckets.current }

    /// Reads the map of buckets, because a statement found the one with this revision outdated. If that fails, the
    /// connection is dropped.
    func refreshBuckets(seen revision: Int32) {
        guard let connection, buckets.revision == revision else { return }
        do throws(PostgresError) {
            try currentBuckets.refresh(seen: revision, over: connection, deadline: .now + .milliseconds(500))
            guard buckets.revision != revision else {
                throw PostgresError(.connectionLost, "the map of buckets is not the one that the database counts by")
            }
        } catch {
            drop(error)
        }
    }

    /// Reads the plans again if a usage row was written with another revision of them. A row without one has nil.
    func refreshCatalog(ifOlderThan revision: Int32?) {
        guard let revision, catalog.revision != revision, let connection else { return }
        // The wait is short, because answers to committed messages wait for it.
        let deadline = ContinuousClock.now + .milliseconds(500)
        do throws(PostgresError) {
            catalog = try PlanCatalog(connection.query(EmbeddedSQL.readPlans, deadline: deadline))
        } catch {
            // The counts of this batch are committed and correct. Only its answers show earlier plans.
            logger.warning("plans could not be read", metadata: ["error": "\(error)"])
            drop(error)
        }
    }

    /// Notes that the answers which are computed now need words of this revision.
    func noteWords(_ revision: Int32?) {
        if let revision, words.isOutdated(revision) { outdatedWords = revision }
    }

    /// Reads the words that the next answers need, if `noteWords` has noted some.
    func refreshWords() {
        guard let seen = outdatedWords else { return }
        outdatedWords = nil
        refreshWords(seen: seen)
    }

    private func refreshWords(seen: Int32?) {
        guard let connection else { return }
        do throws(PostgresError) {
            // The wait is short, because answers to committed messages wait for it.
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

/// A row by which the lane finds out, after a lost connection, what became of its newest statement in a bucket.
struct LaneReceipt: Sendable {
    let id: ReceiptID
    /// The number of the newest statement that was sent to change something: a batch, or one change such as SETPLAN.
    var number: Int64

    /// Makes a receipt with a new random id.
    static func new() -> LaneReceipt { LaneReceipt(id: .random(), number: 0) }

    /// Whether the database may have this number: that of the newest statement, or the one before if it was not
    /// committed. A row with any other number is not as the lane has left it.
    func mayHave(_ number: Int64) -> Bool { (self.number - 1...self.number).contains(number) }
}

/// The id of a lane's receipt.
struct ReceiptID: Equatable, Sendable {
    var high: UInt64
    var low: UInt64

    static func random() -> ReceiptID { ReceiptID(high: .random(in: 0 ... .max), low: .random(in: 0 ... .max)) }

    var uuid: (high: UInt64, low: UInt64) { (high, low) }
}
