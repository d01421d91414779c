import Usage

/// One user's requests on the slow path: decides each in its order from what was read, and keeps the changes to write.
///
/// A pure value. Nothing is written before all requests of the transaction are decided.
struct UserTransaction {
    let user: UserID
    let locked: LockedUser
    /// The snapshot after the requests that were decided so far.
    private(set) var snapshot: UsageSnapshot
    /// The messages that are held now, which may be more than the snapshot and the usage row can have.
    private(set) var held: Int {
        didSet { snapshot.held = held }
    }
    private(set) var keys: [MessageKey: UsedKey]
    /// The keys to insert.
    private(set) var newKeys: Set<MessageKey> = []
    /// The used keys to update.
    private(set) var changedKeys: Set<MessageKey> = []
    private(set) var pastUsage: [BillingPeriod: PastUsage]
    /// The counters of the parts that the requests and their keys name (`partKeys`).
    var parts: [PartKey: StoredPart] = [:]
    private(set) var balances: UserBalances
    /// The messages that were counted in the open period and given back.
    private(set) var released = 0
    /// An instant that is not later than the end of the first hold. After that hold was settled, it may be too early.
    private(set) var holdsEndAt: Instant?
    /// Whether the usage row is to be written.
    private(set) var isChanged: Bool
    /// Whether the window must be written into the row that contains it, because the open period has no row.
    private(set) var isWindowChangedElsewhere = false
    /// Whether a message is counted or held, so that the user's rows are created if there are none.
    private(set) var countsOrHolds = false

    /// - Parameters:
    ///   - keys: the keys that were used before, of those that the requests name.
    ///   - pastUsage: the usage in each period of a key that is not open; none for a period without a row.
    init(
        _ user: UserID,
        _ locked: LockedUser,
        keys: [MessageKey: UsedKey] = [:],
        pastUsage: [BillingPeriod: PastUsage] = [:]
    ) {
        self.user = user
        self.locked = locked
        self.keys = keys
        self.pastUsage = pastUsage
        snapshot = locked.snapshot
        snapshot.held = locked.held
        held = locked.held
        balances = UserBalances(locked.balances, plainLimit: locked.plainLimit)
        holdsEndAt = locked.holdsEndAt
        isChanged = locked.isOutdated
    }

    private var now: Instant { snapshot.observedAt }
    private var hasUsageRow: Bool { locked.hasUsageRow || countsOrHolds }

    mutating func decide(_ operation: BatchedOperation, in parts: MessageParts? = nil) -> SlowPathResult {
        let user = user
        switch operation {
        case .consume(let messages, let key): return countOrHold(messages, key, parts, holdSeconds: nil)
        case .reserve(let messages, let key, let seconds):
            return countOrHold(messages, key, parts, holdSeconds: seconds)
        case .commit(let messages, let key): return commit(messages, key)
        case .release(let key): return release(key)
        case .check(let messages): return SlowPathResult(charging(parts) { $0.check(messages, of: user) })
        case .usage: return SlowPathResult(charging(parts) { $0.usage(of: user) })
        }
    }

    // MARK: CONSUME and RESERVE

    private mutating func countOrHold(
        _ messages: Int,
        _ key: MessageKey?,
        _ parts: MessageParts?,
        holdSeconds: Int?
    ) -> SlowPathResult {
        let verb: UsedKey.Verb = holdSeconds == nil ? .consume : .reserve
        if let key, let used = keys[key] { return repetition(of: used, verb, messages, parts) }
        let user = user
        var counters = openParts(parts)
        var answer = snapshot.charging(parts, &counters) {
            verb == .consume ? $0.consume(messages, of: user) : $0.reserve(messages, of: user)
        }
        if case .blocked = answer.status { return SlowPathResult(answer) }
        isChanged = true
        countsOrHolds = true
        let messages = messages * answer.snapshot.weight
        let expiresAt = holdSeconds.map { now.advanced(bySeconds: Int64($0)) }
        if let expiresAt {
            held += messages
            holdsEndAt = min(holdsEndAt ?? expiresAt, expiresAt)
        }
        keep(counters, holdsEndAt: expiresAt)
        let charges = balances.take(messages, counted: snapshot.used + held, in: snapshot.period)
        showBalances()
        if !balances.isEmpty {
            answer.snapshot.set(snapshot.entitlement.balances)
            answer.snapshot.limit = snapshot.limit
        }
        if let key {
            newKeys.insert(key)
            keys[key] = UsedKey(
                verb: verb,
                status: expiresAt == nil ? .counted : .held,
                messages: messages,
                first: snapshot.allowances,
                createdAt: now,
                expiresAt: expiresAt,
                generation: locked.generation,
                period: snapshot.period,
                windowOpenedAt: snapshot.window?.openedAt,
                parts: KeyParts(answer.snapshot, charges: charges) {
                    self.parts[PartKey(period: snapshot.period, id: $0)]?.generation
                }
            )
        }
        return SlowPathResult(answer, messagesCounted: verb == .consume ? messages : 0)
    }

    /// The answer to a key that was used before. It is the first answer only while the messages are counted or held.
    private func repetition(
        of key: UsedKey,
        _ verb: UsedKey.Verb,
        _ messages: Int,
        _ parts: MessageParts?
    ) -> SlowPathResult {
        if key.status == .released { return SlowPathResult(.keyReleased) }
        guard key.verb == verb, key.messages == messages * key.weight, key.parts?.named == parts else {
            return SlowPathResult(.keyConflict)
        }
        guard !key.isExpired(at: now) else { return SlowPathResult(.holdExpired) }
        var answer = answer(of: key, key.first, \.first, as: verb == .consume ? .allowed : .held)
        answer.snapshot.set(key.parts?.first?.balances)
        // Whether the message was beyond an unenforced limit follows from the numbers after the first request.
        answer.isShadow = answer.snapshot.isBeyondUnenforcedLimit
        return SlowPathResult(answer)
    }

    /// The answer that a key got: it is about the key's period, with the numbers of that time.
    ///
    /// - Parameter numbers: the parts' numbers in an answer that is repeated; nil for an answer that is not.
    private func answer(
        of key: UsedKey,
        _ allowances: Allowances,
        _ numbers: KeyPath<KeyPart, KeyPart.Numbers?>?,
        as status: Answer.Status
    ) -> Answer {
        let isRepeated = numbers != nil
        var shown = snapshot
        if key.period != snapshot.period {
            // The first answer was about an earlier period, or another plan.
            let past = pastUsage[key.period]
            shown.entitlement = Entitlement(
                plan: past?.plan ?? snapshot.plan,
                state: past?.state ?? snapshot.state,
                period: key.period,
                limit: allowances.period.limit,
                window: snapshot.window,
                startedAt: past?.startedAt ?? snapshot.startedAt,
                resetsAt: past?.resetsAt,
                expiresAt: past?.expiresAt,
                previousPlan: snapshot.previousPlan,
                renews: past?.renews
            )
        }
        if let named = key.parts?.named { shown.parts = self.parts(named, of: key) }
        // The messages were allowed when they were counted or held, even if access has ended since.
        shown.denialReason = nil
        (shown.used, shown.held) = (allowances.period.used, allowances.period.held)
        if shown.limit != allowances.period.limit { shown.limit = allowances.period.limit }
        if isRepeated {
            // If the window has ended, the answer keeps its numbers.
            let isOpen = key.windowOpenedAt != nil && key.windowOpenedAt == snapshot.window?.openedAt
            let window = allowances[.window]?.limit.map {
                UsageWindow(
                    limit: $0,
                    openedAt: isOpen ? key.windowOpenedAt : nil,
                    endsAt: isOpen ? snapshot.window?.endsAt : nil
                )
            }
            if shown.window != window { shown.window = window }
            (shown.windowUsed, shown.windowHeld) = (allowances[.window]?.used ?? 0, allowances[.window]?.held ?? 0)
        }
        if let numbers, !shown.parts.isEmpty {
            shown.parts = shown.parts.map { present in
                guard let part = key.parts?[present.part.kind] else { return present }
                let openedAt = present.counter.windowOpenedAt?.microsecondsSince1970
                let isOpen = part.window != nil && part.window == openedAt
                return PartUsage(part[keyPath: numbers] ?? KeyPart.Numbers(), present, isOpen: isOpen)
            }
        }
        return Answer(user: user, status: status, snapshot: shown, isRepeated: isRepeated)
    }

    // MARK: COMMIT

    /// - Parameter messages: the messages to count; nil means all that the key holds.
    private mutating func commit(_ messages: Int?, _ name: MessageKey) -> SlowPathResult {
        guard var key = keys[name] else { return SlowPathResult(.noSuchKey) }
        guard key.verb == .reserve else { return SlowPathResult(.keyConflict) }
        switch key.status {
        case .released: return SlowPathResult(.keyReleased)
        case .counted:
            guard messages.map({ $0 * key.weight }) ?? key.messages == key.countedMessages else {
                return SlowPathResult(.keyConflict)
            }
            guard let commit = key.commit else {
                var answer = answer(of: key, key.first, \.first, as: .allowed)
                answer.snapshot.set(key.parts?.first?.balances)
                return SlowPathResult(answer)
            }
            var answer = answer(of: key, commit.allowances, \.commit, as: .allowed)
            answer.snapshot.set(key.parts?.commit?.balances)
            return SlowPathResult(answer)
        case .held: break
        }
        guard !key.isExpired(at: now) else { return SlowPathResult(.holdExpired) }
        let messages = messages.map { $0 * key.weight } ?? key.messages
        guard messages <= key.messages else { return SlowPathResult(.commitTooLarge) }
        guard key.period == snapshot.period, hasUsageRow else { return commitInPastPeriod(messages, name, key) }
        snapshot.used += messages
        held = max(held - key.messages, 0)
        isChanged = true
        changeWindow(of: key, used: messages, held: -key.messages)
        changeParts(of: key, used: messages, held: -key.messages)
        giveBack(&key, atMost: key.messages - messages)
        return committed(messages, name, key, snapshot.allowances, generation: locked.generation)
    }

    /// Commits a hold whose period is not open any more, or whose row was deleted. The message counts in that period.
    private mutating func commitInPastPeriod(_ messages: Int, _ name: MessageKey, _ key: UsedKey) -> SlowPathResult {
        // An operator has deleted the usage row, and with it the hold.
        guard var past = pastUsage[key.period] else { return SlowPathResult(.holdExpired) }
        past.used = min(past.used + messages, UsageSnapshot.countMaximum)
        past.held = max(past.held - key.messages, 0)
        past.heldInRow = min(past.held, UsageSnapshot.countMaximum)
        past.isChanged = true
        changeWindow(of: key, used: messages, held: -key.messages)
        changeParts(of: key, used: messages, held: -key.messages)
        var key = key
        let givenBack = giveBack(&key, atMost: key.messages - messages)
        past.limit = past.limit.map { $0 - givenBack }
        pastUsage[key.period] = past
        let allowances = Allowances(
            period: Allowance(used: past.used, held: past.heldInRow, limit: past.limit),
            snapshot.allowances[.window]
        )
        return committed(messages, name, key, allowances, generation: past.generation)
    }

    private mutating func committed(
        _ messages: Int,
        _ name: MessageKey,
        _ key: UsedKey,
        _ allowances: Allowances,
        generation: Int64?
    ) -> SlowPathResult {
        var key = key
        key.status = .counted
        key.commit = UsedKey.Commit(messages: messages, allowances: allowances)
        key.generation = generation
        for (id, _) in key.parts?.counted ?? [] {
            key.parts?[id.kind]?.generation = parts[PartKey(period: key.period, id: id)]?.generation
        }
        let answer = answer(of: key, allowances, nil, as: .allowed)
        for usage in answer.snapshot.parts { key.parts?[usage.part.kind]?.commit = usage.numbers }
        if let shown = KeyBalances(answer.snapshot.balances) {
            key.parts = key.parts ?? KeyParts()
            key.parts?.commit = shown
        }
        update(name, key)
        return SlowPathResult(answer, messagesCounted: messages)
    }

    /// Changes the window in which a key was counted or held, if it is still open.
    private mutating func changeWindow(of key: UsedKey, used: Int, held: Int) {
        guard let openedAt = key.windowOpenedAt, openedAt == snapshot.window?.openedAt else { return }
        snapshot.windowUsed = max(snapshot.windowUsed + used, 0)
        snapshot.windowHeld = max(snapshot.windowHeld + held, 0)
        if hasUsageRow { isChanged = true } else { isWindowChangedElsewhere = true }
    }

    private mutating func update(_ name: MessageKey, _ key: UsedKey) {
        keys[name] = key
        if !newKeys.contains(name) { changedKeys.insert(name) }
    }

    // MARK: RELEASE

    private mutating func release(_ name: MessageKey) -> SlowPathResult {
        guard var key = keys[name] else { return SlowPathResult(.noSuchKey) }
        let status = key.status
        guard status != .released else { return released(0, of: key, isRepeated: true) }
        let isExpired = key.isExpired(at: now)
        key.status = .released
        update(name, key)
        // The hold has expired, so there is nothing to give back.
        guard !isExpired else { return released(0, of: key) }
        guard key.period == snapshot.period else {
            // This comes first, because the answer has the window after it.
            let messages = releaseInPastPeriod(&key, wasHeld: status == .held)
            update(name, key)
            return released(messages, of: key)
        }
        if status == .held {
            held = max(held - key.messages, 0)
            isChanged = isChanged || hasUsageRow
            changeWindow(of: key, used: 0, held: -key.messages)
            changeParts(of: key, used: 0, held: -key.messages)
            giveBack(&key)
            update(name, key)
            return released(key.messages, of: key)
        }
        // With another generation, the count was reset since, and does not include the messages.
        guard hasUsageRow, key.generation == locked.generation else { return released(0, of: key) }
        snapshot.used = max(snapshot.used - key.countedMessages, 0)
        released += key.countedMessages
        isChanged = true
        changeWindow(of: key, used: -key.countedMessages, held: 0)
        changeParts(of: key, used: -key.countedMessages, held: 0)
        giveBack(&key)
        update(name, key)
        return released(key.countedMessages, of: key)
    }

    /// - Parameter messages: those of the user. The answer says how many of the request's they are.
    private func released(_ messages: Int, of key: UsedKey, isRepeated: Bool = false) -> SlowPathResult {
        var shown = snapshot
        if let named = key.parts?.named { shown.parts = presentParts(named) }
        return SlowPathResult(
            Answer(
                user: user,
                status: .ok,
                snapshot: shown,
                released: messages / key.weight,
                isRepeated: isRepeated
            )
        )
    }

    /// - Returns: the number of messages that were given back.
    private mutating func releaseInPastPeriod(_ key: inout UsedKey, wasHeld: Bool) -> Int {
        guard var past = pastUsage[key.period] else { return 0 }
        if wasHeld {
            past.held = max(past.held - key.messages, 0)
            past.heldInRow = max(past.heldInRow - key.messages, 0)
        } else if key.generation == past.generation {
            past.used = max(past.used - key.countedMessages, 0)
            past.released += key.countedMessages
        } else {
            return 0
        }
        past.isChanged = true
        pastUsage[key.period] = past
        giveBack(&key)
        changeWindow(of: key, used: wasHeld ? 0 : -key.countedMessages, held: wasHeld ? -key.messages : 0)
        changeParts(of: key, used: wasHeld ? 0 : -key.countedMessages, held: wasHeld ? -key.messages : 0)
        return wasHeld ? key.messages : key.countedMessages
    }
}

/// The balances from which messages are taken.
extension UserTransaction {
    /// Whether the rows of balances are to be written, and attached to the usage row.
    var changesBalances: Bool { !balances.charges.isEmpty || !balances.isEmpty && (isChanged || locked.hasUsageRow) }

    /// Gives the messages of a key that are not counted after all back to the balances from which they were taken.
    ///
    /// - Returns: the messages that were given back.
    @discardableResult
    private mutating func giveBack(_ key: inout UsedKey, atMost messages: Int = .max) -> Int {
        defer { showBalances() }
        guard var charges = key.parts?.charges, messages > 0 else { return 0 }
        let before = charges.values.reduce(0, +)
        balances.giveBack(&charges, atMost: messages, in: key.period, isOpen: key.period == snapshot.period)
        key.parts?.charges = charges.isEmpty ? nil : charges
        return before - charges.values.reduce(0, +)
    }

    private mutating func showBalances() {
        guard !balances.isEmpty || !balances.charges.isEmpty else { return }
        snapshot.set(balances.left)
        let limit = balances.limit(counted: snapshot.used + held)
        if snapshot.limit != limit { snapshot.limit = limit }
    }
}
