import Usage

/// The users with the most messages, merged from page ranges of the table.
struct TopUsers {
    private var byUser: [UserID: PeriodUsage] = [:]
    private let count: Int

    init(count: Int) {
        self.count = count
    }

    /// Rows with fewer messages cannot be among the top users any more.
    private(set) var usedMinimum = 0

    /// - Parameter rows: newer than those of earlier calls. A row that moved to a later page since is read twice, and
    ///   then its newer version counts.
    mutating func merge(_ rows: [PeriodUsage]) {
        guard !rows.isEmpty else { return }
        for row in rows { byUser[row.user] = row }
        guard byUser.count > count else {
            usedMinimum = byUser.count < count ? 0 : sorted.last?.used ?? 0
            return
        }
        let kept = sorted.prefix(count)
        byUser = Dictionary(kept.map { ($0.user, $0) }, uniquingKeysWith: { first, _ in first })
        usedMinimum = kept.last?.used ?? 0
    }

    /// The most messages first; ties by user, so that equal rows always have the same order.
    var sorted: [PeriodUsage] {
        byUser.values.sorted { ($1.used, $0.user) < ($0.used, $1.user) }
    }
}
