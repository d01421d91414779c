import Postgres
import Usage

/// The columns that count_batch (but for its first row), perform_batch, read_batch and read_period have in common, in
/// their order.
struct StandingRow {
    private let result: QueryResult
    private let row: Int
    /// read_period has no place for one.
    private let first: Int

    init(_ result: QueryResult, row: Int, hasOrdinal: Bool = true) {
        self.result = result
        self.row = row
        first = hasOrdinal ? 1 : 0
    }

    /// Position in the arrays that were sent, from 0.
    var ordinal: Int { Int(result.int32(row, 0)) - 1 }
    var used: Int { Int(result.int32(row, first)) }
    private var limit: Int? {
        result.isNull(row, first + 2) ? nil : Int(result.int32(row, first + 2))
    }
    var planRevision: Int32 { result.int32(row, first + 9) }
    private var observedAt: Instant { Instant(microsecondsSince1970: result.timestamp(row, first + 10)) }

    private func instant(_ column: Int) -> Instant? {
        guard !result.isNull(row, column) else { return nil }
        return Instant(microsecondsSince1970: result.timestamp(row, column))
    }

    var held: Int { Int(result.int32(row, first + 1)) }

    /// - Parameter period: the label under which the row was found, where the statement does not return it.
    func terms(_ catalog: PlanCatalog, period: BillingPeriod? = nil) -> Terms {
        Terms(
            plan: catalog.plan(named: result.text(row, first + 3)),
            state: SubscriptionState(rawValue: result.text(row, first + 4)) ?? .active,
            period: period ?? BillingPeriod(storedLabel: result.text(row, first + 11)),
            limit: limit,
            startedAt: instant(first + 5) ?? observedAt,
            resetsAt: instant(first + 6),
            expiresAt: instant(first + 7),
            previousPlan: result.isNull(row, first + 8) ? nil : result.text(row, first + 8)
        )
    }

    func standing(_ catalog: PlanCatalog, period: BillingPeriod? = nil) -> Standing {
        Standing(
            terms: terms(catalog, period: period),
            used: used,
            held: held,
            lapse: period == nil && hasLapse ? Refusal(rawValue: result.text(row, first + 12)) : nil,
            observedAt: observedAt
        )
    }

    private var hasLapse: Bool {
        result.columnCount > first + 12 && !result.isNull(row, first + 12)
    }

    /// What perform_batch did for a request.
    func performed(_ catalog: PlanCatalog) -> Performed {
        Performed(
            standing: standing(catalog),
            verdict: Performed.Verdict(rawValue: result.text(row, first + 13)),
            messages: Int(result.int64(row, first + 14)),
            isReplay: result.bool(row, first + 15)
        )
    }

    /// From count_batch: names the row's terms; nil in rows from before versions were kept.
    var termsVersion: Int64? { result.isNull(row, 12) ? nil : result.int64(row, 12) }

    /// From read_batch: a message would write the row anew, even a refused one.
    var isStale: Bool { result.bool(row, first + 13) }
}
