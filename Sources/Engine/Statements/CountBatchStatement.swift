import Postgres
import Usage

/// Counts the messages of many users, one row each, once per number of a lane's receipt: the fast path.
/// `headroom.count_batch` documents parameters and result.
struct CountBatchStatement {
    static let plain = PreparedQuery(name: "count_batch", sql: EmbeddedSQL.countBatch)
    /// The statement for batches in which a request has a key or names parts.
    static let keyed = PreparedQuery(name: "count_keyed_batch", sql: EmbeddedSQL.countKeyedBatch)

    let groups: ArraySlice<Batch.UserRequests>
    /// The cache's entry of each group's user; nil if the user is not cached.
    let cached: [UserCache.Entry?]
    let periods: PeriodOrdinals
    let isPlain: Bool
    /// The revision of the plans by which the messages of users with parts are charged.
    private let planRevision: Int32
    /// What the groups take of limits of parts, in their order, and the index of each one's group.
    let charges: [PartCharge]
    /// The requests of the batch, in which the groups are ranges.
    private let requests: [BatchedRequest]

    /// - Parameter usual: the periods in which the row of an uncached user is looked for.
    init(
        _ groups: ArraySlice<Batch.UserRequests>,
        cached: [UserCache.Entry?],
        charges: [PartCharge] = [],
        requests: [BatchedRequest],
        planRevision: Int32,
        usual: @autoclosure () -> [BillingPeriod]
    ) {
        self.groups = groups
        self.cached = cached
        self.planRevision = planRevision
        periods = PeriodOrdinals(cached, usual: usual())
        isPlain = !groups.contains { $0.keyed != nil || $0.hasParts }
        self.charges = charges
        self.requests = requests
    }

    var query: PreparedQuery { isPlain ? CountBatchStatement.plain : CountBatchStatement.keyed }

    func parameters(in bucket: Bucket, _ bucketsRevision: Int32, lane: ReceiptID, number: Int64) -> Parameters {
        // These are locals, because a closure that captures self copies all of it.
        let (groups, cached, periods, first) = (groups, cached, periods, groups.startIndex)
        var parameters = Parameters(capacity: 160 + groups.count * 64)
        parameters.append(int16: bucket)
        parameters.append(uuid: lane.uuid)
        parameters.append(int64: number)
        parameters.appendUUIDs(count: groups.count) {
            let user = groups[first + $0].user
            return (user.high, user.low)
        }
        parameters.appendTexts(count: periods.labels.count) { periods.labels[$0] }
        parameters.appendInt32s(count: groups.count) { periods.ordinals[$0] }
        parameters.appendInt64s(count: groups.count) { Int64(groups[first + $0].messages) }
        parameters.appendInt64s(count: groups.count) { cached[$0]?.version ?? .min }
        if !isPlain {
            appendKeys(to: &parameters)
            appendParts(to: &parameters)
        }
        parameters.append(int32: bucketsRevision)
        return parameters
    }

    private func appendParts(to parameters: inout Parameters) {
        let (groups, first, cached, charges) = (groups, groups.startIndex, cached, charges)
        parameters.append(int32: planRevision)
        parameters.appendTexts(count: groups.contains(where: \.hasParts) ? groups.count : 0) {
            groups[first + $0].hasParts ? cached[$0]?.entitlement.plan.name : nil
        }
        parameters.appendInt32s(count: charges.count) { Int32(charges[$0].group + 1) }
        parameters.appendTexts(count: charges.count) { charges[$0].id.kind.rawValue }
        parameters.appendTexts(count: charges.count) { charges[$0].id.name }
        parameters.appendInt64s(count: charges.count) { Int64(charges[$0].messages) }
        parameters.appendNullableInt32s(count: charges.count) { charges[$0].limit.allowance.map { Int32($0) } }
        parameters.appendNullableInt32s(count: charges.count) {
            (charges[$0].limit.window?.messages).map { Int32($0) }
        }
        parameters.appendNullableInt32s(count: charges.count) {
            (charges[$0].limit.window?.seconds).map { Int32($0) }
        }
    }

    private func appendKeys(to parameters: inout Parameters) {
        let (groups, first) = (groups, groups.startIndex)
        parameters.appendTexts(count: groups.count) { groups[first + $0].keyed?.key.text }
        parameters.appendTexts(count: groups.count) { groups[first + $0].keyed?.verb.rawValue }
        parameters.appendNullableInt32s(count: groups.count) { groups[first + $0].keyed?.messages.map { Int32($0) } }
        parameters.appendInt64s(count: groups.count) { Int64(groups[first + $0].keyed?.messagesSoFar ?? 0) }
        parameters.appendInt32s(count: groups.count) { Int32(groups[first + $0].keyed?.holdSeconds ?? 0) }
        let (cached, requests) = (cached, requests)
        let haveParts = groups.contains { $0.keyed != nil && $0.hasParts }
        parameters.appendTexts(count: haveParts ? groups.count : 0) {
            let group = groups[first + $0]
            guard group.keyed != nil, let plan = cached[$0]?.entitlement.plan else { return nil }
            return requests[group.range.lowerBound].parts.map { KeyParts.textBeforeCounting($0, plan) }
        }
    }

    /// The counts of all users who were counted, and the rows of those whose entitlement the lane has not cached, or
    /// who hold messages.
    struct Result {
        private let result: QueryResult
        private let counts, usageRows, countedParts: Int
        /// The database's clock; 1970 if headroom.now() returns null, in which case nothing is counted.
        let observedAt: Instant
        /// The revision of the words; nil if it cannot be read.
        let wordsRevision: Int32?

        /// - Throws: if the function was replaced by one that returns something else. It is unknown then which users
        ///   were counted. `forEachCount` throws for the same reason.
        init(_ result: QueryResult) throws(PostgresError) {
            guard result.rowCount > 0 else {
                throw PostgresError.replacedFunction("headroom.count_batch returned no counts")
            }
            self.result = result
            counts = try result.column("counts")
            usageRows = try result.column("usage_rows")
            countedParts = try result.column("parts")
            let clock = try result.column("observed_at")
            observedAt = Instant(microsecondsSince1970: result.isNull(0, clock) ? 0 : try result.timestamp(0, clock))
            wordsRevision = result.wordsRevision
        }

        /// Calls `body` for each counted user.
        func forEachCount(_ body: (CountedUser) -> Void) throws(PostgresError) {
            var decoder = CountedUserDecoder()
            do throws(PostgresError) {
                try result.forEachInt64(0, counts) {
                    if let user = decoder.next($0) { body(user) }
                }
            } catch {
                throw result.isNull(0, counts)
                    ? PostgresError.replacedFunction("headroom.count_batch returned no counts") : error
            }
        }

        /// The rows of users; nil if there are none.
        func userRows() throws(PostgresError) -> UserRows? {
            guard let rows = try result.records(0, usageRows, UserRows.columns) else { return nil }
            return try UserRows(rows)
        }

        /// The counters of the parts before the batch, by the index of the group; empty if none were counted.
        func parts(chargedTo charges: [PartCharge], groups: Int) throws(PostgresError) -> [UserParts?] {
            guard !result.isNull(0, countedParts) else { return [] }
            var decoder = CountedPartDecoder()
            var parts: [UserParts?] = Array(repeating: nil, count: groups)
            var areKnown = true
            try result.forEachInt64(0, countedParts) { number in
                guard let (index, counter) = decoder.next(number) else { return }
                guard charges.indices.contains(index) else {
                    areKnown = false
                    return
                }
                let charge = charges[index]
                if parts[charge.group] == nil { parts[charge.group] = UserParts(knowsFallbacks: false) }
                parts[charge.group]?.set(counter.before(charge), for: charge.id)
            }
            guard areKnown else {
                throw PostgresError.replacedFunction("headroom.count_keyed_batch returned a part that was not sent")
            }
            return parts
        }
    }

    /// A user's holds after a batch.
    struct Holds {
        var held = 0
        var windowHeld = 0
        /// The messages that the key of a `commit` or a `release` held.
        var keyMessages = 0
    }

    /// The rows of users.
    struct UserRows {
        /// The attributes of `headroom.counted_row`.
        static let columns: [StaticString] = [
            "ordinal", "key_messages", "entitlement_version", "plan", "state", "denial_reason", "billing_period",
            "used", "held", "limit", "started_at", "resets_at", "expires_at", "previous_plan", "renews", "observed_at",
            "plan_revision", "messages", "window_opened_at", "window_ends_at", "window_used", "window_held",
            "window_limit", "extra", "extra_expires",
        ]

        let entitlements: EntitlementDecoder
        private let result: QueryResult
        private let ordinal, held, windowHeld, keyMessages, version: Int

        fileprivate init(_ result: QueryResult) throws(PostgresError) {
            self.result = result
            entitlements = try EntitlementDecoder(result)
            ordinal = try result.column("ordinal")
            held = try result.column("held")
            windowHeld = try result.column("window_held")
            keyMessages = try result.column("key_messages")
            version = try result.column("entitlement_version")
        }

        var indices: Range<Int> { 0..<result.rowCount }

        /// The index of the row's user in the arrays that were sent. It is checked, because the function that returns
        /// it may have been replaced.
        func index(_ row: Int, below count: Int) throws(PostgresError) -> Int {
            let index = Int(try result.int32(row, ordinal)) - 1
            guard (0..<count).contains(index) else {
                throw PostgresError.replacedFunction("headroom.count_batch returned a row of none of its users")
            }
            return index
        }

        func holds(_ row: Int) throws(PostgresError) -> Holds {
            Holds(
                held: try result.count(row, held, of: .held),
                windowHeld: try result.countOrNil(row, windowHeld, of: .windowHeld) ?? 0,
                keyMessages: result.isNull(row, keyMessages) ? 0 : Int(try result.int32(row, keyMessages))
            )
        }

        /// The version of the entitlement; nil in rows that are older than versions.
        func version(_ row: Int) throws(PostgresError) -> Int64? {
            result.isNull(row, version) ? nil : try result.int64(row, version)
        }
    }
}

/// A counted user, as `headroom.count_batch` returns it and the receipt stores it.
struct CountedUser: Equatable {
    /// The index of the user in the arrays that were sent.
    let index: Int
    /// The ordinal of the period counted in, among the periods that were sent.
    let periodOrdinal: Int
    /// The `message_count` after the batch.
    let count: Int
    /// The `window_count` after the batch; nil if the plan has no window.
    let windowCount: Int?
}

/// Decodes the entries in which `headroom.count_batch` returns what it has counted. The entry of a user's window, with
/// 0 instead of a period, comes before the user's own.
struct CountedUserDecoder {
    private var windowCount: Int?

    /// Decodes an entry; nil for the entry of a window, which belongs to the next one.
    mutating func next(_ entry: Int64) -> CountedUser? {
        let count = Int(entry & 0xFFFF_FFFF)
        guard entry >> 48 > 0 else {
            windowCount = count
            return nil
        }
        defer { windowCount = nil }
        return CountedUser(
            index: Int(entry >> 32 & 0xFFFF) - 1,
            periodOrdinal: Int(entry >> 48),
            count: count,
            windowCount: windowCount
        )
    }
}

/// Decodes the numbers in which `headroom.count_parts` returns what it has counted (`headroom.counted_batch`).
struct CountedPartDecoder {
    private var index = 0
    private var used = 0
    private var others: [Int64] = []
    private var othersMissing = 0

    /// Decodes a number; nil if others of the same part follow. The index is that of the part among those sent.
    mutating func next(_ number: Int64) -> (index: Int, counter: PartCounter)? {
        if othersMissing > 0 {
            others.append(number)
            othersMissing -= 1
            guard othersMissing == 0 else { return nil }
        } else {
            index = Int(number >> 32 & 0x3FFF_FFFF) - 1
            used = Int(number & 0xFFFF_FFFF)
            others.removeAll(keepingCapacity: true)
            guard number >> 62 == 0 else {
                othersMissing = 5
                return nil
            }
        }
        var counter = PartCounter()
        counter.used = used
        guard others.count == 5 else { return (index, counter) }
        counter.held = Int(others[0])
        if others[1] > 0 {
            counter.windowOpenedAt = Instant(microsecondsSince1970: others[1])
            counter.windowEndsAt = Instant(microsecondsSince1970: others[2])
            (counter.windowUsed, counter.windowHeld) = (Int(others[3]), Int(others[4]))
        }
        return (index, counter)
    }
}

/// The few periods in which the rows of many users are expected, and each user's ordinal among them. Ordinals begin at
/// 1; an uncached user, whose row may be in any of the periods, has 0.
struct PeriodOrdinals {
    private(set) var labels: [String] = []
    private(set) var ordinals: [Int32] = []

    init(_ cached: [UserCache.Entry?], usual: @autoclosure () -> [BillingPeriod]) {
        ordinals.reserveCapacity(cached.count)
        var last: Int32 = 0
        var hasUnknown = false
        for entry in cached {
            guard let label = entry?.entitlement.period.label else {
                hasUnknown = true
                ordinals.append(0)
                continue
            }
            // The period is nearly always that of the user before.
            if last == 0 || labels[Int(last) - 1] != label {
                if let index = labels.firstIndex(of: label) {
                    last = Int32(index) + 1
                } else {
                    labels.append(label)
                    last = Int32(labels.count)
                }
            }
            ordinals.append(last)
        }
        if hasUnknown { labels += usual().map(\.label).filter { !labels.contains($0) } }
    }

    /// - Throws: if the database returns another ordinal than one that was sent: the function was replaced.
    func period(_ ordinal: Int) throws(PostgresError) -> BillingPeriod {
        guard labels.indices.contains(ordinal - 1) else {
            throw PostgresError.replacedFunction("headroom.count_batch returned a period that it was not given")
        }
        return BillingPeriod(storedLabel: labels[ordinal - 1])
    }
}

extension Batch {
    /// Answers the requests of all counted groups, and returns the other groups.
    ///
    /// - Parameters:
    ///   - entitlements: the entitlement of each group; nil if it is unknown.
    ///   - holds: the holds of a group's user, if there are any, by the group's index.
    ///   - parts: the counters of the parts before the batch, by the group's index; empty if no request names a part.
    ///   - learn: called with a group's user, the snapshot after its last request, and the counted messages.
    /// - Throws: as `CountBatchStatement.Result.forEachCount`, before any request is answered.
    func answer(
        _ groups: ArraySlice<UserRequests>,
        _ counted: CountBatchStatement.Result,
        _ entitlements: [Entitlement?],
        _ holds: [Int: CountBatchStatement.Holds],
        _ parts: consuming [UserParts?],
        into completions: inout [Completion],
        learn: (UserID, UsageSnapshot, _ messages: Int) -> Void
    ) throws(PostgresError) -> [UserRequests] {
        completions.reserveCapacity(completions.count + requests.count)
        let first = groups.startIndex
        let observedAt = counted.observedAt
        var isCounted = Array(repeating: false, count: groups.count)
        var countedGroups = 0
        try counted.forEachCount { user in
            let index = user.index
            guard entitlements.indices.contains(index), let entitlement = entitlements[index] else { return }
            let group = groups[first + index]
            isCounted[index] = true
            countedGroups += 1
            let after = holds.isEmpty ? nil : holds[index]
            var snapshot = UsageSnapshot(
                entitlement: entitlement,
                used: user.count - group.messages,
                held: after?.held ?? 0,
                windowUsed: user.windowCount.map { $0 - group.messages } ?? 0,
                windowHeld: after?.windowHeld ?? 0,
                observedAt: observedAt
            )
            let keyMessages = group.keyed == nil ? 0 : after?.keyMessages ?? 0
            if let keyed = group.keyed { snapshot.takeBack(keyed, keyMessages) }
            let counted = user.count - snapshot.used
            let parts = parts.isEmpty ? nil : parts[index].take()
            answer(group, from: &snapshot, keyMessages: keyMessages, parts: parts, into: &completions)
            learn(group.user, snapshot, counted)
        }
        guard countedGroups < groups.count else { return [] }
        return zip(groups, isCounted).compactMap { $1 ? nil : $0 }
    }
}

extension UsageSnapshot {
    /// Turns the snapshot after a request with a key into the one before it. The caller takes off the messages of a
    /// `consume`.
    ///
    /// - Parameter heldBefore: the messages that the key of a `commit` or a `release` held.
    mutating func takeBack(_ keyed: Batch.Keyed, _ heldBefore: Int) {
        let (counted, added): (Int, Int) =
            switch keyed.verb {
            case .consume: (0, 0)
            case .reserve: (0, keyed.messages ?? 0)
            case .commit: (keyed.messages ?? heldBefore, -heldBefore)
            case .release: (0, -heldBefore)
            }
        used -= counted
        held -= added
        guard window != nil else { return }
        windowUsed -= counted
        windowHeld -= added
    }
}
