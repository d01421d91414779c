import Usage

/// The users with the most messages, gathered from portions of the table.
struct TopUsers {
    private var byUser: [UserID: PeriodUsage] = [:]
    private let count: Int

    init(count: Int) {
        self.count = count
    }

    /// Rows that count fewer messages are not among them any more.
    private(set) var fewestThatMatter = 0

    /// - Parameter rows: read later than those before, so that a row that was met before, and has moved to a later page
    ///   since, counts as it is now.
    mutating func merge(_ rows: [PeriodUsage]) {
        guard !rows.isEmpty else { return }
        for row in rows { byUser[row.user] = row }
        guard byUser.count > count else {
            fewestThatMatter = byUser.count < count ? 0 : sorted.last?.used ?? 0
            return
        }
        let kept = sorted.prefix(count)
        byUser = Dictionary(kept.map { ($0.user, $0) }, uniquingKeysWith: { first, _ in first })
        fewestThatMatter = kept.last?.used ?? 0
    }

    /// The most messages first; ties by user, so that the same rows always come in the same order.
    var sorted: [PeriodUsage] {
        byUser.values.sorted { ($1.used, $0.user) < ($0.used, $1.user) }
    }
}
