import Postgres
import Usage

/// Batches that were counted by a connection which broke before it could say so.
extension BatchExecutor {
    /// What a key's repetitions are told beside the count, and so its first use.
    private struct KeyNumbers {
        var held: Int
        var limit: Int?
    }

    /// The receipt tells each user's count, and a key what its first use is told; everything else is read now.
    ///
    /// - Parameter periods: in which each group's row was expected, and so counted.
    mutating func settleRepeated(
        _ counts: [Int: Int],
        _ groups: ArraySlice<Batch.Group>,
        _ periods: [BillingPeriod],
        of batch: inout Batch,
        deliver: Deliver
    ) -> [Batch.Group] {
        var counted: [Batch.Group] = []
        var places: [UserID: (period: BillingPeriod, count: Int)] = [:]
        for (ordinal, count) in counts.sorted(by: { $0.key < $1.key }) {
            let place = groups.startIndex + ordinal
            // A receipt that somebody has edited.
            guard groups.indices.contains(place) else { continue }
            let group = groups[place]
            counted.append(group)
            places[group.user] = (periods[ordinal], count)
        }
        let rest = groups.enumerated().compactMap { counts[$0.offset] == nil ? $0.element : nil }
        metrics.add(counted.reduce(0) { $0 + $1.messages }, to: .messages)
        guard let keys = readKeys(counted[...], of: &batch, deliver: deliver) else {
            fail(counted[...], .unknown, of: batch, deliver: deliver)
            return rest
        }
        // They are counted: "nothing was counted" must not be what they are told if the reading fails.
        readStandings(counted[...], of: &batch, orFail: .unknown, deliver: deliver) {
            carrier,
            group,
            _,
            now,
            batch,
            completions in
            guard let (period, count) = places[group.user] else { return true }
            var before = now
            before.used = count - group.messages
            if now.period != period {
                // The next period has begun since: the one in which the message counted ended where this one starts.
                before.period = period
                before.held = 0
                before.resetsAt = now.resetsAt == nil ? now.observedAt : now.startedAt
            }
            if let key = keys[group.user] { (before.held, before.limit) = (key.held, key.limit) }
            // What was counted was allowed then, whatever an operator has changed since.
            before.denialReason = nil
            if let limit = before.limit { before.limit = max(limit, before.used + before.held + group.messages) }
            _ = batch.settle(group, from: before, into: &completions)
            return true
        }
        return rest
    }

    /// Nil when the database refuses to tell. Empty also when the keys could not be read in time, after which their
    /// requests are answered as unknown.
    private mutating func readKeys(
        _ groups: ArraySlice<Batch.Group>,
        of batch: inout Batch,
        deliver: Deliver
    ) -> [UserID: KeyNumbers]? {
        let keyed = groups.filter { $0.keyed != nil }
        guard !keyed.isEmpty else { return [:] }
        let trip = trips.read(keyed[...], of: &batch, orFail: .unknown, deliver: deliver) {
            connection throws(PostgresError) in
            var parameters = Parameters(capacity: 128 + keyed.count * 48)
            parameters.appendUUIDs(count: keyed.count) { (keyed[$0].user.high, keyed[$0].user.low) }
            parameters.appendTexts(count: keyed.count) { keyed[$0].keyed?.key.text }
            try connection.send(prepared: PreparedStatement.readKeys.rawValue, parameters)
        }
        switch trip {
        case .done(let result):
            var numbers: [UserID: KeyNumbers] = [:]
            for row in 0..<result.rowCount {
                do throws(PostgresError) {
                    numbers[keyed[result.ordinal(row, 0)].user] = KeyNumbers(
                        held: try result.count(row, 1, of: StoredColumn("headroom.message_keys", "held")),
                        limit: try result.countOrNil(row, 2, of: StoredColumn("headroom.message_keys", "limit"))
                    )
                } catch {
                    // The numbers of the usage row stand in for the key's.
                    invalidValues.record(error)
                }
            }
            return numbers
        case .repeated, .gone, .thinned:
            return [:]
        case .rejected(let error):
            logger.warning("keys could not be read after a lost reply", metadata: ["error": "\(error)"])
            return nil
        }
    }
}
