import Postgres
import Usage

/// Locks the users of a batch and reads what decides their requests: the first half of the slow path's transaction.
/// The files of the statements document parameters and results.
struct LockUsersStatement {
    static let receipt = PreparedQuery(name: "lock_receipt", sql: EmbeddedSQL.lockReceipt)
    static let users = PreparedQuery(name: "lock_and_read_users", sql: EmbeddedSQL.lockAndReadUsers)
    static let keys = PreparedQuery(name: "read_keys", sql: EmbeddedSQL.readKeys)

    private let bucket: Bucket
    private let bucketsRevision: Int32
    private let groups: ArraySlice<Batch.UserRequests>
    private let mayCreate: [Bool]
    /// The keys that the requests name, each once.
    private let keys: [(user: UserID, key: MessageKey)]
    private let unknownUsersPolicy: UnknownUsersPolicy

    init(_ part: BatchPart, _ unknownUsersPolicy: UnknownUsersPolicy) {
        bucket = part.bucket
        bucketsRevision = part.bucketsRevision
        let (groups, batch) = (part.groups, part.batch)
        self.groups = groups
        self.unknownUsersPolicy = unknownUsersPolicy
        mayCreate = groups.map { group in
            unknownUsersPolicy != .deny
                && group.range.contains { batch.requests[$0].operation.countsOrHolds }
        }
        var keys: [(user: UserID, key: MessageKey)] = []
        for group in groups {
            var named: Set<MessageKey> = []
            for request in batch.requests[group.range] {
                if let key = request.operation.key, named.insert(key).inserted { keys.append((group.user, key)) }
            }
        }
        self.keys = keys
    }

    /// Begins the transaction and sends its statements.
    func send(over connection: DatabaseConnection, lane: ReceiptID, number: Int64) throws(PostgresError) {
        try connection.sendPipeline { pipeline throws(PostgresError) in
            try pipeline.begin()
            var receipt = ReceiptStatement.parameters(bucket, lane: lane, number: number)
            receipt.append(int32: bucketsRevision)
            try pipeline.send(prepared: LockUsersStatement.receipt.name, receipt)
            var users = Parameters(capacity: 128 + groups.count * 32)
            users.append(int16: bucket)
            users.append(usersOf: groups)
            users.appendBools(count: mayCreate.count) { mayCreate[$0] }
            users.append(text: unknownUsersPolicy.rawValue)
            try pipeline.send(prepared: LockUsersStatement.users.name, users)
            if !keys.isEmpty { try pipeline.send(prepared: LockUsersStatement.keys.name, keyParameters()) }
        }
    }

    private func keyParameters() -> Parameters {
        let keys = keys
        var parameters = Parameters(capacity: 128 + keys.count * 48)
        parameters.append(int16: bucket)
        parameters.appendUUIDs(count: keys.count) { (keys[$0].user.high, keys[$0].user.low) }
        parameters.appendTexts(count: keys.count) { keys[$0].key.text }
        return parameters
    }

    /// Locks and reads the usage row of one past period; nil if there is none.
    static func pastUsage(
        of user: UserID,
        in period: BillingPeriod,
        over connection: DatabaseConnection,
        _ catalog: PlanCatalog,
        deadline: ContinuousClock.Instant
    ) throws(PostgresError) -> PastUsage? {
        var parameters = Parameters()
        parameters.append(uuid: (user.high, user.low))
        parameters.append(text: period.label)
        let result = try connection.query(EmbeddedSQL.lockPastUsage, parameters, deadline: deadline)
        return result.rowCount == 0 ? nil : try PastUsage(result.firstRow, catalog)
    }

    /// The answers of this batch if it was committed before. The other results have no meaning then.
    static func receiptAnswers(_ results: [QueryResult]) throws(PostgresError) -> String? {
        guard let result = results.first else {
            throw PostgresError.replacedFunction("headroom.lock_receipt returned nothing")
        }
        return try result.firstRow.textOrNil("answers")
    }

    /// The users in the order of the groups.
    func users(_ results: [QueryResult], _ catalog: PlanCatalog) throws(PostgresError) -> [LockedUser] {
        guard results.count > 1, results[1].rowCount == groups.count else {
            throw PostgresError.replacedFunction("headroom.lock_and_read_users returned no row for a user")
        }
        let decoder = try LockedUserDecoder(results[1])
        return try (0..<groups.count).map { row throws(PostgresError) in try decoder.user(row, catalog) }
    }

    /// The users whose requests may create the subscriber.
    func newUsers(_ lockedUsers: [LockedUser]) -> Set<UserID> {
        var new: Set<UserID> = []
        for (index, group) in groups.enumerated() where mayCreate[index] && !lockedUsers[index].hasSubscriber {
            new.insert(group.user)
        }
        return new
    }

    static func planRevision(_ results: [QueryResult]) throws(PostgresError) -> Int32? {
        guard results.count > 1, results[1].rowCount > 0 else { return nil }
        return try UsageSnapshotDecoder(results[1]).planRevision(0)
    }

    static func wordsRevision(_ results: [QueryResult]) -> Int32? { results.count > 1 ? results[1].wordsRevision : nil }

    /// The keys that were used before, by user.
    func usedKeys(_ results: [QueryResult]) throws(PostgresError) -> [UserID: [MessageKey: UsedKey]] {
        results.count > 2 ? try usedKeys(in: results[2]) : [:]
    }

    /// Reads the keys once more in the same transaction.
    func usedKeysAgain(
        over connection: DatabaseConnection,
        deadline: ContinuousClock.Instant
    ) throws(PostgresError) -> [UserID: [MessageKey: UsedKey]] {
        try usedKeys(in: connection.query(EmbeddedSQL.readKeys, keyParameters(), deadline: deadline))
    }

    private func usedKeys(in result: QueryResult) throws(PostgresError) -> [UserID: [MessageKey: UsedKey]] {
        var used: [UserID: [MessageKey: UsedKey]] = [:]
        let ordinal = try result.column("ordinal")
        for (row, values) in try result.rows({ row throws(PostgresError) in try UsedKey(row) }).enumerated() {
            let named = keys[result.ordinal(row, ordinal)]
            used[named.user, default: [:]][named.key] = values
        }
        return used
    }
}

/// Decodes rows of `headroom.lock_and_read_users`.
private struct LockedUserDecoder {
    private let result: QueryResult
    private let snapshots: UsageSnapshotDecoder
    private let entitlement, usableUntil, held, holdsEndAt, hasSubscription, hasSubscriber, hasUsageRow: Int
    private let generation, isOutdated, windowPeriod, plainLimit, balances: Int

    init(_ result: QueryResult) throws(PostgresError) {
        self.result = result
        snapshots = try UsageSnapshotDecoder(result)
        entitlement = try result.column("entitlement")
        usableUntil = try result.column("usable_until")
        held = try result.column("held_by_keys")
        holdsEndAt = try result.column("holds_end_at")
        hasSubscription = try result.column("has_subscription")
        hasSubscriber = try result.column("has_subscriber")
        hasUsageRow = try result.column("has_usage_row")
        generation = try result.column("generation")
        isOutdated = try result.column("is_outdated")
        windowPeriod = try result.column("window_period")
        plainLimit = try result.column("plain_limit")
        balances = try result.column("balances")
    }

    func user(_ row: Int, _ catalog: PlanCatalog) throws(PostgresError) -> LockedUser {
        LockedUser(
            snapshot: try snapshots.snapshot(row, catalog),
            entitlement: result.text(row, entitlement),
            usableUntil: Instant(microsecondsSince1970: try result.timestamp(row, usableUntil)),
            held: Int(try result.int64(row, held)),
            windowPeriod: result.isNull(row, windowPeriod)
                ? nil : BillingPeriod(storedLabel: result.text(row, windowPeriod)),
            holdsEndAt: result.isNull(row, holdsEndAt)
                ? nil : Instant(microsecondsSince1970: try result.timestamp(row, holdsEndAt)),
            hasSubscription: try result.bool(row, hasSubscription),
            hasSubscriber: try result.bool(row, hasSubscriber),
            hasUsageRow: try result.bool(row, hasUsageRow),
            generation: result.isNull(row, generation) ? nil : try result.int64(row, generation),
            isOutdated: try result.bool(row, isOutdated),
            plainLimit: try result.countOrNil(row, plainLimit, of: .limit),
            balances: result.isNull(row, balances) ? nil : try balances(result.text(row, balances))
        )
    }
}

extension LockedUserDecoder {
    private func balances(_ json: String) throws(PostgresError) -> [UserBalances.Balance] {
        do {
            return try UserBalances.decode(json)
        } catch {
            throw PostgresError.replacedFunction("headroom.lock_and_read_users returned other balances")
        }
    }
}

extension UsedKey {
    init(_ row: ResultRow) throws(PostgresError) {
        func source(_ name: String) -> StoredColumn { StoredColumn("headroom.message_keys", name) }
        func instant(_ name: StaticString) throws(PostgresError) -> Instant? {
            try row.isNull(name) ? nil : try row.instant(name)
        }
        typealias Columns = (used: StaticString, held: StaticString, limit: StaticString)
        func allowance(_ name: Allowance.Name, _ columns: Columns) throws(PostgresError) -> Allowance {
            Allowance(
                name,
                used: try row.countOrNil(columns.used, of: source("\(columns.used)")) ?? 0,
                held: try row.countOrNil(columns.held, of: source("\(columns.held)")) ?? 0,
                limit: try row.countOrNil(columns.limit, of: source("\(columns.limit)"))
            )
        }
        func allowances(_ period: Columns, _ window: Columns) throws(PostgresError) -> Allowances {
            let second = try allowance(.window, window)
            return Allowances(period: try allowance(.period, period), second.limit == nil ? nil : second)
        }
        guard let verb = Verb(rawValue: try row.text("verb")), let status = Status(rawValue: try row.text("status"))
        else {
            throw source("status").invalid(try row.text("status"), unless: "status in ('c', 'h', 'r')")
        }
        self.init(
            verb: verb,
            status: status,
            messages: try row.count("messages", of: source("messages"), in: 1...1_000_000),
            first: try allowances(("used", "held", "limit"), ("window_used", "window_held", "window_limit")),
            commit: try row.isNull("committed_messages")
                ? nil
                : Commit(
                    messages: try row.count("committed_messages", of: source("committed_messages")),
                    allowances: try allowances(
                        ("committed_used", "committed_held", "committed_limit"),
                        ("committed_window_used", "committed_window_held", "committed_window_limit")
                    )
                ),
            createdAt: try row.instant("created_at"),
            expiresAt: try instant("expires_at"),
            generation: try row.int64("generation"),
            period: try row.period("billing_period"),
            windowOpenedAt: try instant("window_opened_at"),
            parts: try row.textOrNil("parts").map { text throws(PostgresError) in
                do {
                    return try KeyParts(text)
                } catch {
                    throw source("parts").invalid("text", unless: "it is as the service has written it")
                }
            }
        )
    }
}

extension PastUsage {
    /// Decodes a row of `lock_past_usage.sql`.
    fileprivate init(_ row: ResultRow, _ catalog: PlanCatalog) throws(PostgresError) {
        let table = "message_usage"
        let plan = try row.textOrNil("plan")
        self.init(
            used: try row.count("used", of: .messageCount),
            held: Int(try row.int64("held")),
            heldInRow: try row.count("held_in_row", of: .held),
            limit: try row.countOrNil("limit", of: .limit),
            generation: try row.int64("generation"),
            plan: try plan.map { name throws(PostgresError) in try catalog.plan(named: name) },
            state: try row.textOrNil("state").flatMap { SubscriptionState(rawValue: $0) },
            startedAt: try row.instantOrNil("started_at", of: table),
            resetsAt: try row.instantOrNil("resets_at", of: table),
            expiresAt: try row.instantOrNil("expires_at", of: table),
            renews: try row.boolOrNil("renews")
        )
    }
}

extension Parameters {
    mutating func append(usersOf groups: ArraySlice<Batch.UserRequests>) {
        let first = groups.startIndex
        appendUUIDs(count: groups.count) {
            let user = groups[first + $0].user
            return (user.high, user.low)
        }
    }
}
