import Usage

/// A lane's cache of users: the period in which it expects a user's usage row, and the entitlement, which a counting
/// statement then need not return.
///
/// Entries are hints: the row decides. A statement that finds no usable row there leaves the user to the slow path, and
/// one that finds another entitlement returns it, so a wrong or missing entry costs time but never a wrong answer.
struct UserCache {
    private struct UserPart: Hashable {
        let user: UserID
        let part: MessagePart
    }

    struct Entry {
        var entitlement: Entitlement
        /// The version of the entitlement in the row; nil if it was read without one.
        var version: Int64?
        /// The revision of the plans when the entry was made.
        var planRevision: Int32 = 0
    }

    /// The revision of the plans that the lane has.
    var planRevision: Int32 = 0
    /// The newest observed time by the database's clock.
    private var now = Instant(microsecondsSince1970: .min)

    /// The day in UTC by the database's clock when it was last observed.
    private(set) var today: CivilDate {
        didSet { calendarMonth = BillingPeriod(year: today.year, month: today.month) }
    }
    /// The period in which the row of an uncached user is expected.
    private var calendarMonth: BillingPeriod
    /// Two generations of entries, so that eviction needs no bookkeeping per user: when the recent one is full it
    /// becomes the older one, and users that are not looked up while the next one fills are evicted.
    private var recent: [UserID: Entry] = [:]
    private var older: [UserID: Entry] = [:]
    /// The users who had nothing left when last seen. Reading them before counting saves a write that would fail.
    private var exhausted: Set<UserID> = []
    /// The parts of users that had nothing left when last seen.
    private var exhaustedParts: Set<UserPart> = []
    private let generationCapacity: Int

    /// The most users in the caches of all lanes together, about 250 bytes each.
    static let capacityOfAllLanes = 262_144

    /// - Parameter capacity: the most users; at least half as many are cached.
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

    /// Whether the user's row is not usable any more, because its period has ended or a plan was edited.
    func isOutdated(_ entry: Entry) -> Bool {
        entry.planRevision != planRevision || entry.entitlement.resetsAt.map { $0 <= now } ?? false
    }

    func isExhausted(_ user: UserID) -> Bool {
        !exhausted.isEmpty && exhausted.contains(user)
    }

    func hasExhaustedParts(of user: UserID, in requests: ArraySlice<BatchedRequest>) -> Bool {
        guard !exhaustedParts.isEmpty else { return false }
        return requests.contains { request in
            request.parts.map {
                $0.all.contains { exhaustedParts.contains(UserPart(user: user, part: $0)) }
            } ?? false
        }
    }

    /// Forgets who is exhausted on a new day, on which an exhausted user may have an allowance again.
    ///
    /// - Parameter now: the present time by the database's clock.
    mutating func observe(_ now: Instant) {
        self.now = now
        let date = now.date
        guard date != today else { return }
        today = date
        exhausted.removeAll(keepingCapacity: true)
        exhaustedParts.removeAll(keepingCapacity: true)
    }

    mutating func learn(_ user: UserID, _ entitlement: Entitlement, version: Int64) {
        insert(user, Entry(entitlement: entitlement, version: version, planRevision: planRevision))
    }

    /// Learns a snapshot that came without an entitlement version.
    mutating func learn(_ user: UserID, _ snapshot: UsageSnapshot) {
        observe(snapshot.observedAt)
        let entry = entry(of: user)
        // The next request may name other parts.
        let entitlement = snapshot.parts.isEmpty ? snapshot.entitlement : snapshot.entitlement.with(parts: [])
        let isKnown = entry?.entitlement == entitlement
        if !isKnown || entry?.planRevision != planRevision {
            let version = isKnown ? entry?.version : nil
            insert(user, Entry(entitlement: entitlement, version: version, planRevision: planRevision))
        }
        learnExhaustion(user, snapshot)
    }

    mutating func learnExhaustion(_ user: UserID, _ snapshot: UsageSnapshot) {
        if snapshot.parts.isEmpty {
            learnExhaustion(user, withoutParts: snapshot)
        } else {
            learnExhaustion(user, withParts: snapshot)
        }
    }

    private mutating func learnExhaustion(_ user: UserID, withParts snapshot: UsageSnapshot) {
        var withoutParts = snapshot
        withoutParts.parts = []
        learnExhaustion(user, withoutParts: withoutParts)
        for usage in snapshot.parts {
            let part = UserPart(user: user, part: usage.part)
            if exhaustedParts.count >= generationCapacity { exhaustedParts.removeAll(keepingCapacity: true) }
            if snapshot.isUsedUp(usage) { exhaustedParts.insert(part) } else { exhaustedParts.remove(part) }
        }
    }

    /// It is inlined, because each counted message calls it.
    @inline(__always)
    private mutating func learnExhaustion(_ user: UserID, withoutParts snapshot: UsageSnapshot) {
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
