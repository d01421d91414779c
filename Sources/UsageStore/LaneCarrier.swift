import Logging
import Postgres
import Usage

/// Carries a lane's batches: decides which statement asks for which users, and turns what the database says into
/// answers. `ExactlyOnce` sends the statements.
///
/// A user goes one of three ways:
/// - **counted** by the hot statement, which touches one row per user and joins nothing;
/// - **read**, where nothing is to be counted, or where the user was seen to have nothing left;
/// - **consumed** the careful way, where one of the others found no row that could be used as it stood.
struct LaneCarrier {
    typealias Deliver = ([Completion]) -> Void

    /// Users that one careful statement carries at most.
    private static let carefulMaximum = 128

    let link: LaneLink
    let trips: ExactlyOnce
    let configuration: StoreConfiguration
    let logger: Logger
    private var hints: PeriodHints

    init(link: LaneLink, wake: WakePipe, configuration: StoreConfiguration, logger: Logger) {
        self.link = link
        self.configuration = configuration
        self.logger = logger
        trips = ExactlyOnce(link: link, wake: wake, logger: logger)
        hints = PeriodHints(calendarMonth: BillingPeriod(year: 1970, month: 1))
    }

    /// Answers every request of a batch. Groups that are done are delivered before slower ones are looked at.
    mutating func carry(_ batch: Batch, deliver: Deliver) {
        if let month = link.takeObservedMonth() { hints.observe(month) }
        var batch = batch
        var toCount: [Batch.Group] = []
        var toRead: [Batch.Group] = []
        for group in batch.groups {
            if group.consumes > 0, !hints.isExhausted(group.user) {
                toCount.append(group)
            } else {
                toRead.append(group)
            }
        }
        var toConsume: [Batch.Group] = []
        if !toCount.isEmpty {
            toConsume += count(toCount[...], of: &batch, deliver: deliver)
        }
        if !toRead.isEmpty {
            toConsume += read(toRead[...], of: &batch, deliver: deliver)
        }
        // Each of these users costs the database ten times what a counted one does; in smaller loads nobody waits for
        // hundreds of others.
        toConsume.sort { $0.user < $1.user }
        var rest = toConsume[...]
        while !rest.isEmpty {
            consume(rest.prefix(LaneCarrier.carefulMaximum), of: &batch, deliver: deliver)
            rest = rest.dropFirst(LaneCarrier.carefulMaximum)
        }
    }

    // MARK: The hot way

    /// Returns the groups that could not be counted this way.
    private mutating func count(
        _ groups: ArraySlice<Batch.Group>,
        of batch: inout Batch,
        deliver: Deliver
    ) -> [Batch.Group] {
        let periods = expectedPeriods(groups)
        let first = groups.startIndex
        let trip = trips.run(groups, of: &batch, deliver: deliver) { connection, lane, number throws(PostgresError) in
            var parameters = Parameters(capacity: 128 + groups.count * 48)
            parameters.append(uuid: lane)
            parameters.append(int64: number)
            parameters.appendUUIDs(count: groups.count) {
                let user = groups[first + $0].user
                return (user.high, user.low)
            }
            parameters.appendTexts(count: groups.count) { periods[$0].label }
            parameters.appendInt64s(count: groups.count) { Int64(groups[first + $0].messages) }
            try connection.send(prepared: PreparedStatement.countBatch.rawValue, parameters)
        }
        switch trip {
        case .done(let result):
            return settle(counted: result, groups, periods, of: batch, deliver: deliver)
        case .repeated(let counts):
            return settleRepeated(counts, groups, periods, of: &batch, deliver: deliver)
        case .gone:
            return []
        case .rejected(let error):
            return isolate(groups, error, of: &batch, deliver: deliver) { carrier, half, batch in
                carrier.count(half, of: &batch, deliver: deliver)
            }
        }
    }

    private mutating func settle(
        counted result: QueryResult,
        _ groups: ArraySlice<Batch.Group>,
        _ periods: [BillingPeriod],
        of batch: Batch,
        deliver: Deliver
    ) -> [Batch.Group] {
        if result.rowCount > 0 { refreshCatalog(StandingRow(result, row: 0).planRevision) }
        var completions: [Completion] = []
        completions.reserveCapacity(batch.requests.count)
        var isCounted = Array(repeating: false, count: groups.count)
        for index in 0..<result.rowCount {
            let row = StandingRow(result, row: index)
            let ordinal = row.ordinal
            let group = groups[groups.startIndex + ordinal]
            isCounted[ordinal] = true
            let before = row.standing(link.catalog, period: periods[ordinal], used: row.used - group.messages)
            let after = batch.settle(group, from: before, into: &completions)
            hints.learn(group.user, after)
        }
        deliver(completions)
        guard result.rowCount < groups.count else { return [] }
        return zip(groups, isCounted).compactMap { $1 ? nil : $0 }
    }

    /// The batch had been counted by a connection that broke before it could say so: the receipt tells each user's
    /// count, and everything else about the user is read now.
    private mutating func settleRepeated(
        _ counts: [Int: Int],
        _ groups: ArraySlice<Batch.Group>,
        _ periods: [BillingPeriod],
        of batch: inout Batch,
        deliver: Deliver
    ) -> [Batch.Group] {
        let repeated = counts.keys.sorted().map { groups[groups.startIndex + $0] }
        var counted: [UserID: (used: Int, period: BillingPeriod)] = [:]
        for (ordinal, count) in counts {
            counted[groups[groups.startIndex + ordinal].user] = (count, periods[ordinal])
        }
        readStandings(repeated[...], of: &batch, deliver: deliver) { carrier, group, row, batch, completions in
            var before = row.standing(carrier.link.catalog)
            if let (used, period) = counted[group.user] {
                before.used = used - group.messages
                if before.period != period {
                    // Counted in a period that is over by now.
                    before.period = period
                    before.resetsAt = before.observedAt
                }
            }
            // What was counted was allowed then, whatever an operator has changed since.
            before.lapse = nil
            if let limit = before.limit { before.limit = max(limit, before.used + before.held + group.messages) }
            _ = batch.settle(group, from: before, into: &completions)
            return true
        }
        return groups.enumerated().compactMap { counts[$0.offset] == nil ? $0.element : nil }
    }

    // MARK: Reading

    /// Returns the groups in which something is to be counted after all.
    private mutating func read(
        _ groups: ArraySlice<Batch.Group>,
        of batch: inout Batch,
        deliver: Deliver
    ) -> [Batch.Group] {
        readStandings(groups, of: &batch, deliver: deliver) { carrier, group, row, batch, completions in
            let standing = row.standing(carrier.link.catalog)
            guard batch.isRefusedThroughout(group, at: standing) else { return false }
            // The careful way writes the limit that refuses into the row: an operator's UPDATE of it would be undone by
            // the next message otherwise, and a client that reads the table would show the limit of before.
            guard group.consumes == 0 || !row.isStale else { return false }
            let after = batch.settle(group, from: standing, into: &completions)
            carrier.hints.learn(group.user, after)
            return true
        }
    }

    private typealias Settle = (
        _ carrier: inout LaneCarrier, _ group: Batch.Group, _ row: StandingRow, _ batch: Batch,
        _ completions: inout [Completion]
    ) -> Bool

    /// Reads and settles; returns the groups for which `settle` said false.
    @discardableResult
    private mutating func readStandings(
        _ groups: ArraySlice<Batch.Group>,
        of batch: inout Batch,
        deliver: Deliver,
        settle: Settle
    ) -> [Batch.Group] {
        let first = groups.startIndex
        let trip = trips.read(groups, of: &batch, deliver: deliver) { connection throws(PostgresError) in
            var parameters = Parameters(capacity: 128 + groups.count * 32)
            parameters.appendUUIDs(count: groups.count) {
                let user = groups[first + $0].user
                return (user.high, user.low)
            }
            parameters.appendTexts(count: groups.count) { hints.period(of: groups[first + $0].user).label }
            parameters.append(text: configuration.unknownUsers.rawValue)
            try connection.send(prepared: PreparedStatement.readBatch.rawValue, parameters)
        }
        switch trip {
        case .done(let result):
            if result.rowCount > 0 { refreshCatalog(StandingRow(result, row: 0).planRevision) }
            var completions: [Completion] = []
            var unsettled: [Batch.Group] = []
            for index in 0..<result.rowCount {
                let row = StandingRow(result, row: index)
                let group = groups[first + row.ordinal]
                if !settle(&self, group, row, batch, &completions) { unsettled.append(group) }
            }
            deliver(completions)
            return unsettled
        case .repeated, .gone:
            return []
        case .rejected(let error):
            return isolate(groups, error, of: &batch, deliver: deliver) { carrier, half, batch in
                carrier.readStandings(half, of: &batch, deliver: deliver, settle: settle)
            }
        }
    }

    // MARK: The careful way

    private mutating func consume(_ groups: ArraySlice<Batch.Group>, of batch: inout Batch, deliver: Deliver) {
        var firsts: [Int32] = []
        var messages: [Int32] = []
        for group in groups {
            firsts.append(Int32(messages.count + 1))
            messages.append(contentsOf: batch.messages(of: group).map { Int32($0) })
        }
        let start = groups.startIndex
        let trip = trips.run(groups, of: &batch, deliver: deliver) { connection, lane, number throws(PostgresError) in
            var parameters = Parameters(capacity: 256 + groups.count * 32 + messages.count * 8)
            parameters.append(uuid: lane)
            parameters.append(int64: number)
            parameters.appendUUIDs(count: groups.count) {
                let user = groups[start + $0].user
                return (user.high, user.low)
            }
            parameters.appendInt32s(count: firsts.count) { firsts[$0] }
            parameters.appendInt32s(count: messages.count) { messages[$0] }
            parameters.append(text: configuration.unknownUsers.rawValue)
            try connection.send(prepared: PreparedStatement.consumeBatch.rawValue, parameters)
        }
        switch trip {
        case .done(let result):
            if result.rowCount > 0 { refreshCatalog(StandingRow(result, row: 0).planRevision) }
            var completions: [Completion] = []
            for index in 0..<result.rowCount {
                let row = StandingRow(result, row: index)
                let group = groups[start + row.ordinal]
                let before = row.standing(link.catalog)
                let after = batch.settle(group, from: before, into: &completions)
                hints.learn(group.user, after)
                assertAgreement(row, before: before, after: after)
            }
            deliver(completions)
        case .repeated, .gone:
            break
        case .rejected(let error):
            _ = isolate(groups, error, of: &batch, deliver: deliver) { carrier, half, batch in
                carrier.consume(half, of: &batch, deliver: deliver)
                return []
            }
        }
    }

    /// The database granted in the same order by the same rule; if it did not, an answer is wrong and somebody must know.
    private func assertAgreement(_ row: StandingRow, before: Standing, after: Standing) {
        guard after.used != min(before.used + row.counted, Standing.countMaximum) else { return }
        logger.critical(
            "the database and the service disagree about a count; please report this",
            metadata: ["count.database": "\(row.counted)", "count.service": "\(after.used - before.used)"]
        )
    }

    /// The labels of the periods in which the rows of these users are expected.
    func expectedPeriods(_ groups: ArraySlice<Batch.Group>) -> [BillingPeriod] {
        groups.map { hints.period(of: $0.user) }
    }

    func refreshCatalog(_ revision: Int32) {
        link.refreshCatalog(ifOlderThan: revision, deadline: .now + configuration.requestTimeout)
    }
}
