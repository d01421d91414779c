import Postgres
import Usage

/// Answers a batch that was counted, but whose reply was lost with the connection.
extension BatchExecutor {
    /// The receipt has the count of each user. The row of a key has the `held` and `limit` of its first use. Everything
    /// else is read now.
    ///
    /// - Returns: the groups that were not counted.
    mutating func answerCounted(
        _ users: [CountedUser],
        _ statement: CountBatchStatement,
        of batch: inout Batch,
        deliver: Deliver
    ) -> [Batch.UserRequests] {
        let groups = statement.groups
        var counted: [Batch.UserRequests] = []
        var rows: [UserID: (period: BillingPeriod, count: Int)] = [:]
        for user in users.sorted(by: { $0.index < $1.index }) {
            // Out of range only if the receipt was edited by hand.
            guard groups.indices.contains(groups.startIndex + user.index),
                let period = try? statement.periods.period(user.periodOrdinal)
            else { continue }
            let group = groups[groups.startIndex + user.index]
            counted.append(group)
            rows[group.user] = (period, user.count)
        }
        let uncounted = groups.filter { rows[$0.user] == nil }
        guard let keys = readKeys(counted[...], of: &batch, deliver: deliver) else {
            metrics.add(counted.reduce(0) { $0 + $1.messages }, to: .messages)
            batch.fail(counted, .unknown, metrics, deliver: deliver)
            return uncounted
        }
        metrics.add(
            counted.reduce(0) { $0 + $1.messages + ($1.keyed?.verb == .commit ? keys[$1.user]?.messages ?? 0 : 0) },
            to: .messages
        )
        // The groups are counted, so the answer after a failed read must not be "nothing was counted".
        readSnapshots(counted[...], of: &batch, isCounted: true, deliver: deliver) {
            _,
            group,
            current,
            _,
            batch,
            completions in
            guard let (period, count) = rows[group.user] else { return true }
            var before = current
            before.used = count - group.messages
            if current.period != period {
                // The billing period has changed since. The old period ended where the current one starts.
                before.period = period
                before.held = 0
                before.resetsAt = current.resetsAt == nil ? current.observedAt : current.startedAt
            }
            let key = keys[group.user]
            if let key, let keyed = group.keyed {
                switch keyed.verb {
                case .consume, .reserve: (before.held, before.limit) = (key.first.held, key.first.limit)
                case .commit: (before.held, before.limit) = (key.committed?.held ?? 0, key.committed?.limit)
                case .release: break
                }
                before.takeBack(keyed, key.messages)
            }
            // The messages were allowed when they were counted, even if an operator has changed the plan since.
            before.denialReason = nil
            if let limit = before.limit { before.limit = max(limit, before.used + before.held + group.messages) }
            _ = batch.answer(group, from: before, keyMessages: key?.messages ?? 0, into: &completions)
            return true
        }
        return uncounted
    }

    /// Reads what the first use of each key returned.
    ///
    /// - Returns: empty if no group has a key, or if the deadlines of these groups have passed; nil if the database
    ///   refuses the statement.
    private mutating func readKeys(
        _ groups: ArraySlice<Batch.UserRequests>,
        of batch: inout Batch,
        deliver: Deliver
    ) -> [UserID: UsedKey]? {
        let keyed = groups.filter { $0.keyed != nil }[...]
        guard !keyed.isEmpty else { return [:] }
        let reply = sender.read(LockUsersStatement.keys, keyed, of: &batch, isCounted: true, deliver: deliver) {
            var parameters = Parameters(capacity: 128 + keyed.count * 48)
            parameters.append(usersOf: keyed)
            parameters.appendTexts(count: keyed.count) { keyed[$0].keyed?.key.text }
            return parameters
        }
        switch reply {
        case .result(let result):
            var values: [UserID: UsedKey] = [:]
            for row in result.rows {
                do throws(PostgresError) {
                    values[keyed[try row.int32("ordinal") - 1].user] = try UsedKey(row)
                } catch {
                    // The values of the usage row are used instead.
                    invalidValues.record(error)
                }
            }
            return values
        case .allExpired:
            return [:]
        case .rejected(let error):
            logger.warning("keys could not be read after a lost reply", metadata: ["error": "\(error)"])
            return nil
        }
    }
}
