import JSON
import Postgres
import Usage

/// Writes what the requests of locked users have changed, and commits: the second half of the slow path's transaction.
/// The files of the statements document their parameters.
struct WriteUsersStatement {
    static let firstSubscriptions = PreparedQuery(
        name: "create_first_subscriptions",
        sql: EmbeddedSQL.createFirstSubscriptions
    )
    static let usageRows = PreparedQuery(name: "write_usage_rows", sql: EmbeddedSQL.writeUsageRows)
    static let earlierPeriods = PreparedQuery(name: "end_earlier_periods", sql: EmbeddedSQL.endEarlierPeriods)
    static let newKeys = PreparedQuery(name: "insert_keys", sql: EmbeddedSQL.insertKeys)
    static let changedKeys = PreparedQuery(name: "update_keys", sql: EmbeddedSQL.updateKeys)
    static let pastUsage = PreparedQuery(name: "write_past_usage", sql: EmbeddedSQL.writePastUsage)
    static let window = PreparedQuery(name: "write_window", sql: EmbeddedSQL.writeWindow)
    static let balances = PreparedQuery(name: "charge_balances", sql: EmbeddedSQL.chargeBalances)
    static let receipt = PreparedQuery(name: "write_receipt", sql: EmbeddedSQL.writeReceipt)

    /// The users, in ascending order.
    let users: [UserTransaction]

    /// - Parameter bucket: the bucket of all users.
    func send(
        over connection: DatabaseConnection,
        in bucket: Bucket,
        lane: ReceiptID,
        number: Int64,
        answers: String
    ) throws(PostgresError) {
        let new = users.filter(\.createsSubscription)
        let changed = users.filter(\.isChanged)
        let begun = users.filter(\.beginsPeriod)
        let newKeys = users.flatMap { user in user.rows(of: user.newKeys) }
        let changedKeys = users.flatMap { user in user.rows(of: user.changedKeys) }
        let parts = users.flatMap(\.partRows)
        let charged = users.filter(\.changesBalances)
        try connection.sendPipeline { pipeline throws(PostgresError) in
            // A first message creates the subscriber before the usage row (docs/decisions/0003-lock-order.md).
            if !new.isEmpty {
                try pipeline.send(
                    prepared: WriteUsersStatement.firstSubscriptions.name,
                    WriteUsersStatement.firstSubscriptions(of: new, in: bucket)
                )
            }
            if !changed.isEmpty {
                try pipeline.send(
                    prepared: WriteUsersStatement.usageRows.name,
                    WriteUsersStatement.usageRows(of: changed, in: bucket)
                )
            }
            if !begun.isEmpty {
                var parameters = Parameters()
                parameters.append(int16: bucket)
                parameters.append(idsOf: begun)
                parameters.appendTexts(count: begun.count) { begun[$0].snapshot.period.label }
                try pipeline.send(prepared: WriteUsersStatement.earlierPeriods.name, parameters)
            }
            for user in users {
                for (period, usage) in user.pastUsage where usage.isChanged {
                    try pipeline.send(
                        prepared: WriteUsersStatement.pastUsage.name,
                        WriteUsersStatement.pastUsage(usage, of: user.user, in: period, bucket)
                    )
                }
                if user.isWindowChangedElsewhere, !user.isChanged, let period = user.locked.windowPeriod {
                    try pipeline.send(
                        prepared: WriteUsersStatement.window.name,
                        WriteUsersStatement.window(of: user, in: period)
                    )
                }
            }
            if !parts.isEmpty {
                try pipeline.send(
                    prepared: WritePartsStatement.query.name,
                    WritePartsStatement.parameters(parts, in: bucket)
                )
            }
            if !newKeys.isEmpty {
                try pipeline.send(prepared: WriteUsersStatement.newKeys.name, WriteUsersStatement.rows(of: newKeys))
            }
            if !changedKeys.isEmpty {
                try pipeline.send(
                    prepared: WriteUsersStatement.changedKeys.name,
                    WriteUsersStatement.rows(of: changedKeys)
                )
            }
            // It reads the usage rows and the keys.
            if !charged.isEmpty {
                try pipeline.send(
                    prepared: WriteUsersStatement.balances.name,
                    WriteUsersStatement.balances(of: charged)
                )
            }
            var receipt = ReceiptStatement.parameters(bucket, lane: lane, number: number)
            receipt.append(text: answers)
            try pipeline.send(prepared: WriteUsersStatement.receipt.name, receipt)
            try pipeline.commit()
        }
    }

    private typealias KeyRow = (user: UserID, key: MessageKey, row: UsedKey)

    // MARK: Parameters

    private static func firstSubscriptions(of users: [UserTransaction], in bucket: Bucket) -> Parameters {
        var parameters = Parameters(capacity: 256 + users.count * 64)
        parameters.append(int16: bucket)
        parameters.append(idsOf: users)
        parameters.appendTexts(count: users.count) { users[$0].snapshot.plan.name }
        parameters.appendTimestamps(count: users.count) { users[$0].snapshot.startedAt.microsecondsSince1970 }
        parameters.appendBools(count: users.count) { users[$0].snapshot.plan.isTrial }
        parameters.appendBools(count: users.count) { users[$0].locked.hasSubscriber }
        return parameters
    }

    private static func usageRows(of users: [UserTransaction], in bucket: Bucket) -> Parameters {
        let count = users.count
        var parameters = Parameters(capacity: 512 + count * 256)
        parameters.append(int16: bucket)
        parameters.appendTexts(count: count) { users[$0].locked.entitlement }
        parameters.appendNullableInt64s(count: count) { users[$0].locked.generation }
        parameters.appendInt32s(count: count) { Int32(users[$0].snapshot.used) }
        parameters.appendInt32s(count: count) { Int32(users[$0].snapshot.held) }
        parameters.appendInt32s(count: count) { Int32(min(users[$0].released, UsageSnapshot.countMaximum)) }
        parameters.appendNullableInt32s(count: count) { users[$0].locked.plainLimit.map { Int32($0) } }
        parameters.appendTimestamps(count: count) { users[$0].usableUntil.microsecondsSince1970 }
        let windows = users.contains { $0.snapshot.window != nil } ? count : 0
        parameters.appendTimestamps(count: windows) { users[$0].snapshot.window?.openedAt?.microsecondsSince1970 }
        parameters.appendTimestamps(count: windows) { users[$0].snapshot.window?.endsAt?.microsecondsSince1970 }
        parameters.appendInt32s(count: windows) { Int32(users[$0].snapshot.windowUsed) }
        parameters.appendInt32s(count: windows) { Int32(users[$0].snapshot.windowHeld) }
        return parameters
    }

    private static func window(of user: UserTransaction, in period: BillingPeriod) -> Parameters {
        var parameters = Parameters()
        parameters.append(uuid: (user.user.high, user.user.low))
        parameters.append(text: period.label)
        parameters.append(timestamptz: user.snapshot.window?.openedAt?.microsecondsSince1970)
        parameters.append(timestamptz: user.snapshot.window?.endsAt?.microsecondsSince1970)
        parameters.append(int32: Int32(user.snapshot.windowUsed))
        parameters.append(int32: Int32(user.snapshot.windowHeld))
        return parameters
    }

    private static func balances(of users: [UserTransaction]) -> Parameters {
        let charges = users.flatMap { user in
            user.balances.charges.filter { $0.value != 0 }.map { (user: user.user, charge: $0.key, messages: $0.value) }
        }
        var parameters = Parameters(capacity: 256 + users.count * 64 + charges.count * 64)
        parameters.append(idsOf: users)
        parameters.appendTexts(count: users.count) { users[$0].snapshot.period.label }
        parameters.appendUUIDs(count: charges.count) { (charges[$0].user.high, charges[$0].user.low) }
        parameters.appendTexts(count: charges.count) { charges[$0].charge.period.label }
        parameters.appendTexts(count: charges.count) { charges[$0].charge.key }
        parameters.appendInt32s(count: charges.count) { Int32(clamping: charges[$0].messages) }
        return parameters
    }

    private static func pastUsage(
        _ usage: PastUsage,
        of user: UserID,
        in period: BillingPeriod,
        _ bucket: Bucket
    ) -> Parameters {
        var parameters = Parameters()
        parameters.append(int16: bucket)
        parameters.append(uuid: (user.high, user.low))
        parameters.append(text: period.label)
        parameters.append(int32: Int32(usage.used))
        parameters.append(int32: Int32(usage.heldInRow))
        parameters.append(int32: Int32(min(usage.released, UsageSnapshot.countMaximum)))
        return parameters
    }

    private static func rows(of keys: [KeyRow]) -> Parameters {
        let count = keys.count
        func int32(_ value: Int?) -> Int32? { value.map { Int32($0) } }
        var parameters = Parameters(capacity: 512 + count * 256)
        parameters.appendUUIDs(count: count) { (keys[$0].user.high, keys[$0].user.low) }
        parameters.appendTexts(count: count) { keys[$0].key.text }
        parameters.appendTexts(count: count) { keys[$0].row.verb.rawValue }
        parameters.appendTexts(count: count) { keys[$0].row.status.rawValue }
        parameters.appendTexts(count: count) { keys[$0].row.period.label }
        parameters.appendTimestamps(count: count) { keys[$0].row.createdAt.microsecondsSince1970 }
        parameters.appendTimestamps(count: count) { keys[$0].row.expiresAt?.microsecondsSince1970 }
        parameters.appendNullableInt64s(count: count) { keys[$0].row.generation }
        parameters.appendInt32s(count: count) { Int32(keys[$0].row.messages) }
        parameters.appendInt32s(count: count) { Int32(keys[$0].row.first.period.used) }
        parameters.appendInt32s(count: count) { Int32(keys[$0].row.first.period.held) }
        parameters.appendNullableInt32s(count: count) { int32(keys[$0].row.first.period.limit) }
        parameters.appendNullableInt32s(count: count) { int32(keys[$0].row.commit?.messages) }
        parameters.appendNullableInt32s(count: count) { int32(keys[$0].row.commit?.allowances.period.used) }
        parameters.appendNullableInt32s(count: count) { int32(keys[$0].row.commit?.allowances.period.held) }
        parameters.appendNullableInt32s(count: count) { int32(keys[$0].row.commit?.allowances.period.limit) }
        parameters.appendTimestamps(count: count) { keys[$0].row.windowOpenedAt?.microsecondsSince1970 }
        parameters.appendNullableInt32s(count: count) { int32(keys[$0].row.first[.window]?.used) }
        parameters.appendNullableInt32s(count: count) { int32(keys[$0].row.first[.window]?.held) }
        parameters.appendNullableInt32s(count: count) { int32(keys[$0].row.first[.window]?.limit) }
        parameters.appendNullableInt32s(count: count) { int32(keys[$0].row.commit?.allowances[.window]?.used) }
        parameters.appendNullableInt32s(count: count) { int32(keys[$0].row.commit?.allowances[.window]?.held) }
        parameters.appendNullableInt32s(count: count) { int32(keys[$0].row.commit?.allowances[.window]?.limit) }
        parameters.appendTexts(count: count) { keys[$0].row.parts?.jsonText }
        return parameters
    }
}

extension Parameters {
    fileprivate mutating func append(idsOf users: [UserTransaction]) {
        appendUUIDs(count: users.count) { (users[$0].user.high, users[$0].user.low) }
    }
}

extension UserTransaction {
    fileprivate func rows(of names: Set<MessageKey>) -> [(user: UserID, key: MessageKey, row: UsedKey)] {
        names.compactMap { name in keys[name].map { (user, name, $0) } }
    }

    /// The rows of parts that were changed, with the limits to store beside them.
    fileprivate var partRows: [WritePartsStatement.Row] {
        parts.compactMap { key, part in
            guard part.isChanged else { return nil }
            var part = part
            // The window is written into the open period's row, which takes it from others.
            if key.period != snapshot.period { part.counter.closeWindow() }
            let limit = snapshot.plan.limits.first {
                $0.kind == key.id.kind && ($0.kind == .member || $0.name == key.id.name)
            }
            return (user, key, part, limit)
        }
    }

    fileprivate var createsSubscription: Bool { countsOrHolds && !locked.hasSubscription }

    /// Whether the transaction writes the first usage row of a period that follows others.
    fileprivate var beginsPeriod: Bool {
        countsOrHolds && !locked.hasUsageRow && locked.hasSubscriber && snapshot.plan.cycle.isPeriodic
    }

    /// Until when the row is usable. The row of a user without access, which only `COMMIT` and `RELEASE` write, is not
    /// usable. Neither is that of a user without a subscription whose requests create none.
    fileprivate var usableUntil: Instant {
        guard snapshot.denialReason == nil, locked.hasSubscription || createsSubscription else {
            return Instant(microsecondsSince1970: .min)
        }
        return holdsEndAt.map { min($0, locked.usableUntil) } ?? locked.usableUntil
    }
}
