import Postgres
import Usage

/// What count_batch and count_keyed_batch are asked.
extension Parameters {
    /// - Parameters:
    ///   - known: what is known of each group's user.
    ///   - month: where a user of whom nothing is known is expected.
    init(
        counting groups: ArraySlice<Batch.Group>,
        _ known: [UserCache.Known?],
        _ month: BillingPeriod,
        lane: LaneName,
        number: Int64
    ) {
        self.init(capacity: 160 + groups.count * 64)
        let first = groups.startIndex
        append(uuid: lane.uuid)
        append(int64: number)
        appendUUIDs(count: groups.count) {
            let user = groups[first + $0].user
            return (user.high, user.low)
        }
        let periods = PeriodPlaces(known, month)
        appendTexts(count: periods.labels.count) { periods.labels[$0] }
        appendInt32s(count: groups.count) { periods.places[$0] }
        appendInt64s(count: groups.count) { Int64(groups[first + $0].messages) }
        appendInt64s(count: groups.count) { known[$0]?.version ?? .min }
    }

    /// What count_keyed_batch is asked besides.
    mutating func appendKeys(of groups: ArraySlice<Batch.Group>) {
        let first = groups.startIndex
        appendTexts(count: groups.count) { groups[first + $0].keyed?.key.text }
        appendInt32s(count: groups.count) { Int32(groups[first + $0].keyed?.messages ?? 0) }
        appendInt64s(count: groups.count) { Int64(groups[first + $0].keyed?.messagesSoFar ?? 0) }
    }
}

/// The few periods in which the rows of many users are expected, and each user's place among them, from 1.
struct PeriodPlaces {
    private(set) var labels: [String] = []
    private(set) var places: [Int32] = []

    init(_ known: [UserCache.Known?], _ month: BillingPeriod) {
        places.reserveCapacity(known.count)
        var last: Int32 = 0
        for known in known {
            let label = (known?.entitlement.period ?? month).label
            // Nearly always that of the user before.
            if last == 0 || labels[Int(last) - 1] != label {
                if let place = labels.firstIndex(of: label) {
                    last = Int32(place) + 1
                } else {
                    labels.append(label)
                    last = Int32(labels.count)
                }
            }
            places.append(last)
        }
    }
}

/// What count_batch and count_keyed_batch return: the counts of all users who were counted, and the rows of those whose
/// entitlement the lane did not know, or who hold messages.
struct CountedRows {
    private let result: QueryResult

    /// Nil when the statement did nothing, because its number had been counted before.
    init?(_ result: QueryResult) {
        guard result.rowCount > 0 else { return nil }
        self.result = result
    }

    /// The value of headroom.now(). If that function returns null, nothing is counted and this value is not used.
    var observedAt: Instant { Instant(microsecondsSince1970: (try? result.timestamp(0, 11)) ?? 0) }

    /// In the order of the arrays that were sent.
    var news: some Sequence<UsageSnapshotRow> {
        (1..<result.rowCount).lazy.map { UsageSnapshotRow(result, row: $0) }
    }

    /// Calls `body` with the place in the arrays that were sent, from 0, and message_count after counting, of each user
    /// who was counted.
    ///
    /// - Throws: before the first call, if the function was replaced by one that returns something else. Which users were
    ///   counted is unknown then.
    func forEachCount(_ body: (_ ordinal: Int, _ count: Int) -> Void) throws(PostgresError) {
        do throws(PostgresError) {
            try result.forEachInt64(0, 13) { body(Int($0 >> 32) - 1, Int($0 & 0xFFFF_FFFF)) }
        } catch {
            throw result.isNull(0, 13)
                ? PostgresError.replacedFunction("headroom.count_batch returned no counts") : error
        }
    }
}

extension Batch {
    /// Tells the requests of all groups that were counted, and returns the groups that were not.
    ///
    /// - Parameters:
    ///   - entitlement: of each group, where they are known.
    ///   - held: messages held by a group's user, by the group's place, where there are any.
    ///   - learn: called with the snapshot after a group's last request.
    /// - Throws: before any request was answered, as `CountedRows.forEachCount`.
    func settle(
        _ rows: CountedRows,
        _ groups: ArraySlice<Group>,
        _ entitlement: [Entitlement?],
        held: [Int: Int],
        into completions: inout [Completion],
        learn: (Group, UsageSnapshot) -> Void
    ) throws(PostgresError) -> [Group] {
        completions.reserveCapacity(completions.count + requests.count)
        let first = groups.startIndex
        let observedAt = rows.observedAt
        var isCounted = Array(repeating: false, count: groups.count)
        var countedGroups = 0
        try rows.forEachCount { ordinal, count in
            guard entitlement.indices.contains(ordinal), let entitlement = entitlement[ordinal] else { return }
            let group = groups[first + ordinal]
            isCounted[ordinal] = true
            countedGroups += 1
            let before = UsageSnapshot(
                entitlement: entitlement,
                used: count - group.messages,
                held: held.isEmpty ? 0 : held[ordinal] ?? 0,
                observedAt: observedAt
            )
            learn(group, settle(group, from: before, into: &completions))
        }
        guard countedGroups < groups.count else { return [] }
        return zip(groups, isCounted).compactMap { $1 ? nil : $0 }
    }
}
