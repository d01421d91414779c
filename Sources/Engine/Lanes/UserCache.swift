import Usage

/// What a lane remembers of the users whom it met: where it expects their usage rows, and their entitlement, which a counting
/// statement then need not send. Only hints: the row decides. A statement that finds no usable row there sends the user the
/// slow path, and one that finds other entitlement sends them, so a wrong or forgotten hint costs time and never an answer.
struct UserCache {
    struct Known {
        var entitlement: Entitlement
        /// Under which the row had these entitlement, where the database said so.
        var version: Int64?
    }

    /// The calendar month by the database's clock, when last heard; where a user who is not known is expected.
    private(set) var calendarMonth: BillingPeriod {
        didSet { calendarMonthNumbers = calendarMonth.month ?? (0, 0) }
    }
    /// Spares the making and comparing of labels for every batch.
    private var calendarMonthNumbers: (year: Int, month: Int)
    /// Two halves, so that forgetting takes no bookkeeping per user: when the recent half is full it becomes the older one,
    /// and who is not met again while the next half fills is forgotten.
    private var recent: [UserID: Known] = [:]
    private var older: [UserID: Known] = [:]
    /// Users who could send nothing more when last seen; reading before counting saves a write that would fail.
    private var exhausted: Set<UserID> = []
    private let halfCapacity: Int

    /// Users whom all lanes of a service together remember at most, about 250 bytes each.
    static let capacityOfAllLanes = 262_144

    /// - Parameter capacity: users remembered at most; at least half as many are.
    init(calendarMonth: BillingPeriod, capacity: Int = capacityOfAllLanes) {
        self.calendarMonth = calendarMonth
        calendarMonthNumbers = calendarMonth.month ?? (0, 0)
        halfCapacity = max(1, capacity / 2)
    }

    mutating func known(_ user: UserID) -> Known? {
        if let known = recent[user] { return known }
        guard !older.isEmpty, let known = older.removeValue(forKey: user) else { return nil }
        remember(user, known)
        return known
    }

    mutating func period(of user: UserID) -> BillingPeriod {
        known(user)?.entitlement.period ?? calendarMonth
    }

    func isExhausted(_ user: UserID) -> Bool {
        !exhausted.isEmpty && exhausted.contains(user)
    }

    /// A new month by the database's clock: who had nothing left may have an allowance again.
    mutating func observe(_ month: BillingPeriod) {
        guard month != calendarMonth else { return }
        calendarMonth = month
        exhausted.removeAll(keepingCapacity: true)
    }

    /// What the database's clock said.
    mutating func observe(_ now: Instant) {
        let date = now.date
        guard (date.year, date.month) != calendarMonthNumbers else { return }
        observe(BillingPeriod(year: date.year, month: date.month))
    }

    /// Remembers a user's entitlement as a row had them under `version`.
    mutating func learn(_ user: UserID, _ entitlement: Entitlement, version: Int64) {
        remember(user, Known(entitlement: entitlement, version: version))
    }

    /// Remembers what was seen of a user by a statement that tells no version.
    mutating func learn(_ user: UserID, _ snapshot: UsageSnapshot) {
        observe(snapshot.observedAt)
        if known(user)?.entitlement != snapshot.entitlement {
            remember(user, Known(entitlement: snapshot.entitlement, version: nil))
        }
        learnExhaustion(user, snapshot)
    }

    mutating func learnExhaustion(_ user: UserID, _ snapshot: UsageSnapshot) {
        if snapshot.refusal(of: 1) != nil {
            if exhausted.count >= halfCapacity { exhausted.removeAll(keepingCapacity: true) }
            exhausted.insert(user)
        } else if !exhausted.isEmpty {
            exhausted.remove(user)
        }
    }

    private mutating func remember(_ user: UserID, _ known: Known) {
        if recent.count >= halfCapacity, recent[user] == nil {
            swap(&recent, &older)
            recent.removeAll(keepingCapacity: true)
        }
        recent[user] = known
    }
}
