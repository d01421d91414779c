import Usage

/// A lane's cache of users: the period in which it expects a user's usage row, and the entitlement, which a counting
/// statement then need not return.
///
/// Only hints: the row decides. A statement that finds no usable row there leaves the user to the slow path, and one
/// that finds another entitlement returns it, so a wrong or missing entry costs time but never a wrong answer.
struct UserCache {
    struct Entry {
        var entitlement: Entitlement
        /// The version that the row gave the entitlement; nil where it was read without one.
        var version: Int64?
    }

    /// The day in UTC by the database's clock when last observed.
    private(set) var today: CivilDate {
        didSet { calendarMonth = BillingPeriod(year: today.year, month: today.month) }
    }
    /// Where a user that is not cached is expected.
    private var calendarMonth: BillingPeriod
    /// Two generations, so that eviction needs no bookkeeping per user: when the recent one is full it becomes the
    /// older one, and users that are not looked up while the next one fills are evicted.
    private var recent: [UserID: Entry] = [:]
    private var older: [UserID: Entry] = [:]
    /// Users that had nothing left when last seen. Reading them before counting saves a write that would fail.
    private var exhausted: Set<UserID> = []
    private let generationCapacity: Int

    /// Users in the caches of all lanes together at most, about 250 bytes each.
    static let capacityOfAllLanes = 262_144

    /// - Parameter capacity: users at most; at least half as many are cached.
    init(today: CivilDate, capacity: Int = capacityOfAllLanes) {
        self.today = today
        calendarMonth = BillingPeriod(year: today.year, month: today.month)
        generationCapacity = max(1, capacity / 2)
    }

    mutating func entry(of user: UserID) -> Entry? {
        if let entry = recent[user] { return entry }
        guard !older.isEmpty, let entry = older.removeValue(forKey: user) else { return nil }
        insert(user, entry)
        return entry
    }

    mutating func period(of user: UserID) -> BillingPeriod {
        entry(of: user)?.entitlement.period ?? calendarMonth
    }

    func isExhausted(_ user: UserID) -> Bool {
        !exhausted.isEmpty && exhausted.contains(user)
    }

    /// On a new day, an exhausted user may have an allowance again.
    ///
    /// - Parameter now: by the database's clock.
    mutating func observe(_ now: Instant) {
        let date = now.date
        guard date != today else { return }
        today = date
        exhausted.removeAll(keepingCapacity: true)
    }

    mutating func learn(_ user: UserID, _ entitlement: Entitlement, version: Int64) {
        insert(user, Entry(entitlement: entitlement, version: version))
    }

    /// From a statement that returns no version.
    mutating func learn(_ user: UserID, _ snapshot: UsageSnapshot) {
        observe(snapshot.observedAt)
        if entry(of: user)?.entitlement != snapshot.entitlement {
            insert(user, Entry(entitlement: snapshot.entitlement, version: nil))
        }
        learnExhaustion(user, snapshot)
    }

    mutating func learnExhaustion(_ user: UserID, _ snapshot: UsageSnapshot) {
        if snapshot.refusal(of: 1) != nil {
            if exhausted.count >= generationCapacity { exhausted.removeAll(keepingCapacity: true) }
            exhausted.insert(user)
        } else if !exhausted.isEmpty {
            exhausted.remove(user)
        }
    }

    private mutating func insert(_ user: UserID, _ entry: Entry) {
        if recent.count >= generationCapacity, recent[user] == nil {
            swap(&recent, &older)
            recent.removeAll(keepingCapacity: true)
        }
        recent[user] = entry
    }
}
