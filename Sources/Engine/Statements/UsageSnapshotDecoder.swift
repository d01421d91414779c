import Postgres
import Usage

/// Decodes the columns of an entitlement, which the results of count_batch, lock_and_read_users, read_batch,
/// read_subscribed_users and read_period have in common. It looks their positions up once per result.
struct EntitlementDecoder {
    let result: QueryResult
    private let plan, state, limit, startedAt, resetsAt, expiresAt, previousPlan, renews, revision, clock: Int
    private let windowLimit, windowOpenedAt, windowEndsAt, extra, extraExpires: Int

    init(_ result: QueryResult) throws(PostgresError) {
        self.result = result
        plan = try result.column("plan")
        state = try result.column("state")
        limit = try result.column("limit")
        startedAt = try result.column("started_at")
        resetsAt = try result.column("resets_at")
        expiresAt = try result.column("expires_at")
        previousPlan = try result.column("previous_plan")
        renews = try result.column("renews")
        revision = try result.column("plan_revision")
        clock = try result.column("observed_at")
        windowLimit = try result.column("window_limit")
        windowOpenedAt = try result.column("window_opened_at")
        windowEndsAt = try result.column("window_ends_at")
        extra = try result.column("extra")
        extraExpires = try result.column("extra_expires")
    }

    /// The revision of the plans; nil if it cannot be read. Decoding the row throws the reason.
    func planRevision(_ row: Int) -> Int32? { try? result.int32(row, revision) }

    /// The database's clock. It is not checked, because arithmetic with instants does not trap.
    func observedAt(_ row: Int) throws(PostgresError) -> Instant {
        Instant(microsecondsSince1970: try result.timestamp(row, clock))
    }

    /// - Throws: as `QueryResult.instantOrNil(_:_:of:)`, if a value is out of range.
    func entitlement(_ row: Int, _ catalog: PlanCatalog, _ period: BillingPeriod) throws(PostgresError) -> Entitlement {
        let startedAt = try result.instantOrNil(row, startedAt, of: .startedAt)
        let observedAt = try observedAt(row)
        return Entitlement(
            plan: try catalog.plan(named: result.text(row, plan)),
            state: SubscriptionState(rawValue: result.text(row, state)) ?? .active,
            period: period,
            limit: try result.countOrNil(row, limit, of: .limit),
            balances: try result.countOrNil(row, extra, of: .extra).map { messages throws(PostgresError) in
                Balances(
                    messages: messages,
                    expiresAt: try result.instantOrNil(row, extraExpires, of: .extraExpires)
                )
            },
            window: try window(row),
            startedAt: startedAt ?? observedAt,
            resetsAt: try result.instantOrNil(row, resetsAt, of: .resetsAt),
            expiresAt: try result.instantOrNil(row, expiresAt, of: .expiresAt),
            previousPlan: result.textOrNil(row, previousPlan),
            renews: result.isNull(row, renews) ? nil : try result.bool(row, renews)
        )
    }

    private func window(_ row: Int) throws(PostgresError) -> UsageWindow? {
        guard let limit = try result.countOrNil(row, windowLimit, of: .windowLimit) else { return nil }
        return UsageWindow(
            limit: limit,
            openedAt: try result.instantOrNil(row, windowOpenedAt, of: .windowOpenedAt),
            endsAt: try result.instantOrNil(row, windowEndsAt, of: .windowEndsAt)
        )
    }
}

/// Decodes usage snapshots, from the results named above except count_batch.
struct UsageSnapshotDecoder {
    private let entitlements: EntitlementDecoder
    private let used, held, windowUsed, windowHeld, period, denialReason: Int
    private var result: QueryResult { entitlements.result }

    init(_ result: QueryResult) throws(PostgresError) {
        entitlements = try EntitlementDecoder(result)
        used = try result.column("used")
        held = try result.column("held")
        windowUsed = try result.column("window_used")
        windowHeld = try result.column("window_held")
        period = try result.column("billing_period")
        denialReason = try result.column("denial_reason")
    }

    func planRevision(_ row: Int) -> Int32? { entitlements.planRevision(row) }

    /// - Throws: as `EntitlementDecoder.entitlement`.
    func snapshot(_ row: Int, _ catalog: PlanCatalog) throws(PostgresError) -> UsageSnapshot {
        UsageSnapshot(
            entitlement: try entitlements.entitlement(
                row,
                catalog,
                BillingPeriod(storedLabel: result.text(row, period))
            ),
            used: try result.count(row, used, of: .messageCount),
            held: try result.count(row, held, of: .held),
            windowUsed: try result.countOrNil(row, windowUsed, of: .windowCount) ?? 0,
            windowHeld: try result.countOrNil(row, windowHeld, of: .windowHeld) ?? 0,
            denialReason: result.textOrNil(row, denialReason).flatMap { DenialReason(rawValue: $0) },
            observedAt: try entitlements.observedAt(row)
        )
    }
}

/// Decodes usage snapshots with the details of `USAGE`, from the results of read_batch and read_subscribed_users.
struct DetailedSnapshotDecoder {
    private let result: QueryResult
    private let snapshots: UsageSnapshotDecoder
    private let ordinal, renewsAt, nextPlan, price, currency, manage: Int

    init(_ result: QueryResult) throws(PostgresError) {
        self.result = result
        snapshots = try UsageSnapshotDecoder(result)
        ordinal = try result.column("ordinal")
        renewsAt = try result.column("renews_at")
        nextPlan = try result.column("next_plan")
        price = try result.column("price")
        currency = try result.column("currency")
        manage = try result.column("manage")
    }

    /// The revision of the plans in the first row; nil if there is none.
    var planRevision: Int32? { result.rowCount > 0 ? snapshots.planRevision(0) : nil }

    /// The index of the row's user in the arrays that were sent.
    func index(_ row: Int) -> Int { result.ordinal(row, ordinal) }

    /// - Throws: as `EntitlementDecoder.entitlement`.
    func snapshot(_ row: Int, _ catalog: PlanCatalog) throws(PostgresError) -> UsageSnapshot {
        var snapshot = try snapshots.snapshot(row, catalog)
        snapshot.renewsAt = try result.instantOrNil(row, renewsAt, of: .expiresAt)
        let details = SubscriptionDetails(
            nextPlan: result.textOrNil(row, nextPlan),
            price: result.textOrNil(row, price),
            currency: result.textOrNil(row, currency),
            manage: result.textOrNil(row, manage)
        )
        // Most users have no details.
        if details != SubscriptionDetails() { snapshot.details = details }
        return snapshot
    }
}

extension QueryResult {
    fileprivate func textOrNil(_ row: Int, _ column: Int) -> String? { isNull(row, column) ? nil : text(row, column) }
}

/// The columns of a snapshot's values. headroom.entitlement checks those of subscriptions and plans.
extension StoredColumn {
    static let messageCount = StoredColumn("message_usage", "message_count")
    static let held = StoredColumn("message_usage", "held")
    static let limit = StoredColumn("message_usage", "limit")
    static let startedAt = StoredColumn("message_usage", "started_at")
    static let resetsAt = StoredColumn("message_usage", "resets_at")
    static let expiresAt = StoredColumn("message_usage", "expires_at")
    static let windowOpenedAt = StoredColumn("message_usage", "window_opened_at")
    static let windowEndsAt = StoredColumn("message_usage", "window_ends_at")
    static let windowCount = StoredColumn("message_usage", "window_count")
    static let windowHeld = StoredColumn("message_usage", "window_held")
    static let windowLimit = StoredColumn("message_usage", "window_limit")
    static let extra = StoredColumn("message_usage", "extra")
    static let extraExpires = StoredColumn("message_usage", "extra_expires")
}
