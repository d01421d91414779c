import Usage

/// The users with the most messages, merged from page ranges of the table. A user with several periods in a month or
/// week is listed with each of them. Among open periods, a user has one.
struct TopUsers {
    private struct Key: Hashable {
        var user: UserID
        /// The period; nil if each user is listed once.
        var period: BillingPeriod?
    }

    private var byKey: [Key: PeriodUsage] = [:]
    private let count: Int
    private let isOfOpen: Bool

    init(count: Int, of period: BillingPeriod) {
        self.count = count
        isOfOpen = period == .open
    }

    private func key(of row: PeriodUsage) -> Key { Key(user: row.user, period: isOfOpen ? nil : row.period) }

    /// The least messages of a row that can still be among the top users.
    private(set) var usedMinimum = 0

    /// - Parameter rows: rows newer than those of earlier calls. A row that moved to a later page since is read twice;
    ///   its newer version counts.
    mutating func merge(_ rows: [PeriodUsage]) {
        guard !rows.isEmpty else { return }
        for row in rows { byKey[key(of: row)] = row }
        guard byKey.count > count else {
            usedMinimum = byKey.count < count ? 0 : sorted.last?.used ?? 0
            return
        }
        let kept = sorted.prefix(count)
        byKey = Dictionary(kept.map { (key(of: $0), $0) }, uniquingKeysWith: { first, _ in first })
        usedMinimum = kept.last?.used ?? 0
    }

    /// The users with the most messages first; equal ones by user and period, so that they always have the same order.
    var sorted: [PeriodUsage] {
        byKey.values.sorted { ($1.used, $0.user, $0.period.number) < ($0.used, $1.user, $1.period.number) }
    }
}
