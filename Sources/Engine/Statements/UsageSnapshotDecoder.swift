import Postgres
import Usage

/// The columns that count_batch (but for its first row), perform_batch, read_batch, read_watched_users and read_period have
/// in common, in their order.
struct UsageSnapshotRow {
    private let result: QueryResult
    private let row: Int
    /// read_period has no place for one.
    private let first: Int

    init(_ result: QueryResult, row: Int, hasOrdinal: Bool = true) {
        self.result = result
        self.row = row
        first = hasOrdinal ? 1 : 0
    }

    /// Position in the arrays that were sent, from 0, of the statement's own `WITH ORDINALITY`.
    var ordinal: Int { result.ordinal(row, 0) }

    /// The same where a function of the database returns it, which somebody may have replaced.
    func ordinal(below count: Int) throws(PostgresError) -> Int {
        let ordinal = Int(try result.int32(row, 0)) - 1
        guard (0..<count).contains(ordinal) else {
            throw PostgresError.replacedFunction("headroom.count_batch returned a row of none of its users")
        }
        return ordinal
    }

    /// Nil if it cannot be read; decoding the row throws the reason.
    var planRevision: Int32? { try? result.int32(row, first + 9) }
    /// The clock's, and no row's: it is not checked, because arithmetic with instants does not trap.
    private var observedAt: Instant {
        get throws(PostgresError) { Instant(microsecondsSince1970: try result.timestamp(row, first + 10)) }
    }

    private var periodLabel: String { result.text(row, first + 11) }

    func held() throws(PostgresError) -> Int { try result.count(row, first + 1, of: .held) }

    /// - Parameter period: the label under which the row was found, where the statement does not return it.
    /// - Throws: as `QueryResult.instantOrNil(_:_:of:)`, where a value is out of range.
    func entitlement(_ catalog: PlanCatalog, period: BillingPeriod? = nil) throws(PostgresError) -> Entitlement {
        let startedAt = try result.instantOrNil(row, first + 5, of: .startedAt)
        let observedAt = try observedAt
        return Entitlement(
            plan: try catalog.plan(named: result.text(row, first + 3)),
            state: SubscriptionState(rawValue: result.text(row, first + 4)) ?? .active,
            period: period ?? BillingPeriod(storedLabel: periodLabel),
            limit: try result.countOrNil(row, first + 2, of: .limit),
            startedAt: startedAt ?? observedAt,
            resetsAt: try result.instantOrNil(row, first + 6, of: .resetsAt),
            expiresAt: try result.instantOrNil(row, first + 7, of: .expiresAt),
            previousPlan: result.isNull(row, first + 8) ? nil : result.text(row, first + 8)
        )
    }

    /// - Throws: as `entitlement`.
    func snapshot(_ catalog: PlanCatalog, period: BillingPeriod? = nil) throws(PostgresError) -> UsageSnapshot {
        UsageSnapshot(
            entitlement: try entitlement(catalog, period: period),
            used: try result.count(row, first, of: .messageCount),
            held: try held(),
            denialReason: period == nil && hasLapse ? DenialReason(rawValue: result.text(row, first + 12)) : nil,
            observedAt: try observedAt
        )
    }

    /// From read_batch and read_watched_users, which alone return when a store renews the subscription, and to which plan.
    func standingWithRenewal(_ catalog: PlanCatalog) throws(PostgresError) -> UsageSnapshot {
        var snapshot = try snapshot(catalog)
        snapshot.renewsAt = try result.instantOrNil(row, first + 14, of: .expiresAt)
        snapshot.nextPlan = result.isNull(row, first + 15) ? nil : result.text(row, first + 15)
        return snapshot
    }

    private var hasLapse: Bool {
        result.columnCount > first + 12 && !result.isNull(row, first + 12)
    }

    /// What perform_batch did for a request.
    func performed(_ catalog: PlanCatalog) throws(PostgresError) -> Performed {
        Performed(
            snapshot: try snapshot(catalog),
            verdict: Performed.Verdict(rawValue: result.text(row, first + 13)),
            messages: Int(try result.int64(row, first + 14)),
            isReplay: try result.bool(row, first + 15)
        )
    }

    /// From count_batch: names the row's entitlement; nil in rows from before versions were kept.
    func termsVersion() throws(PostgresError) -> Int64? { result.isNull(row, 12) ? nil : try result.int64(row, 12) }

    /// From read_batch: a message would write the row anew, even a refused one.
    func isStale() throws(PostgresError) -> Bool { try result.bool(row, first + 13) }
}

/// Where the values of a snapshot come from. Those of subscriptions and plans are checked by headroom.entitlement.
extension StoredColumn {
    static let messageCount = StoredColumn("message_usage", "message_count")
    static let held = StoredColumn("message_usage", "held")
    static let limit = StoredColumn("message_usage", "limit")
    static let startedAt = StoredColumn("message_usage", "started_at")
    static let resetsAt = StoredColumn("message_usage", "resets_at")
    static let expiresAt = StoredColumn("message_usage", "expires_at")
}
