import Usage

extension ReferenceModel {
    /// Why the model rejects a request with a key.
    public enum KeyError: Error, Sendable, Equatable {
        /// The key was used with another verb or number of messages.
        case conflict
        /// The messages of the key were released.
        case released
        /// The hold has expired, or its usage row was deleted.
        case expired
        /// More messages are to be committed than are held.
        case tooMany
        case unknownKey
    }

    /// A row of `headroom.message_keys`: the first outcome of a request with a key.
    struct UsedKey: Sendable {
        enum Verb: Sendable { case consume, reserve }
        enum Status: Sendable { case counted, held, released }

        var verb: Verb
        var messages: Int
        var period: BillingPeriod
        /// The generation of the usage row in which the messages were counted.
        var generation: Int
        /// When the window opened in which the messages were counted or held.
        var windowOpenedAt: Instant?
        /// An expired hold keeps the status `held`.
        var status: Status
        /// The numbers in the answer to the first request.
        var first: Numbers
        /// The messages that the first commit has counted, and the numbers in its answer.
        var committedMessages: Int?
        var committed: Numbers?
        /// The end of a hold; nil for a counted message, and after the usage row was deleted.
        var expiresAt: Instant?

        /// The messages that count while the status is `counted`.
        var countedMessages: Int { committedMessages ?? messages }

        func isActive(at now: Instant) -> Bool {
            status == .held && expiresAt.map { now < $0 } ?? false
        }
    }

    /// The numbers that a repetition returns again.
    struct Numbers: Sendable {
        var used: Int
        var held: Int
        var limit: Int?
        var windowUsed: Int
        var windowHeld: Int
        /// Nil if the plan had no window.
        var windowLimit: Int?

        init(_ snapshot: UsageSnapshot) {
            (used, held, limit) = (snapshot.used, snapshot.held, snapshot.limit)
            (windowUsed, windowHeld) = (snapshot.windowUsed, snapshot.windowHeld)
            windowLimit = snapshot.window?.limit
        }
    }

    /// `CONSUME` with a key: counts once per key.
    public mutating func consume(
        _ user: UserID,
        messages: Int = 1,
        key: MessageKey,
        at now: Instant
    ) throws(KeyError) -> Answer {
        if let used = keys[user]?[key] {
            return try replay(used, .consume, messages: messages, user: user, at: now)
        }
        let answer = consume(user, messages: messages, at: now)
        if answer.status == .allowed {
            store(key, .consume, messages: messages, as: answer, expiresAt: nil)
        }
        return answer
    }

    /// `RESERVE`: holds messages until commit, release, or the end of `ttlSeconds`.
    public mutating func reserve(
        _ user: UserID,
        messages: Int = 1,
        key: MessageKey,
        ttlSeconds: Int = 120,
        at now: Instant
    ) throws(KeyError) -> Answer {
        if let used = keys[user]?[key] {
            return try replay(used, .reserve, messages: messages, user: user, at: now)
        }
        var snapshot = snapshot(of: user, at: now)
        if let refusal = snapshot.refusal(of: messages) {
            if snapshot.denialReason == nil, rows[user]?[snapshot.period] != nil {
                write(snapshot, of: user, isUsed: false, at: now)
            }
            return snapshot.blocked(refusal, messages: messages, user: user)
        }
        let before = snapshot.tier
        if let window = snapshot.plan.window, snapshot.window?.openedAt == nil {
            let endsAt = now.advanced(bySeconds: Int64(window.seconds))
            snapshot.window = UsageWindow(limit: window.messages, openedAt: now, endsAt: endsAt)
        }
        write(snapshot, of: user, isUsed: true, at: now)
        snapshot.held = min(snapshot.held + messages, UsageSnapshot.countMaximum)
        if snapshot.window != nil { snapshot.windowHeld += messages }
        let crossed = snapshot.tier > before ? snapshot.tier : nil
        let answer = Answer(
            user: user,
            status: .held,
            snapshot: snapshot,
            crossed: crossed,
            isShadow: snapshot.isBeyondUnenforcedLimit
        )
        let expiresAt = now.advanced(bySeconds: Int64(ttlSeconds))
        store(key, .reserve, messages: messages, as: answer, expiresAt: expiresAt)
        return answer
    }

    /// `COMMIT`: counts held messages, by default all, in the period of the hold, and gives back the rest. This is so
    /// also after the user's access has ended.
    public mutating func commit(
        _ user: UserID,
        messages: Int? = nil,
        key: MessageKey,
        at now: Instant
    ) throws(KeyError) -> Answer {
        guard let used = keys[user]?[key] else { throw .unknownKey }
        guard used.verb == .reserve else { throw .conflict }
        switch used.status {
        case .released: throw .released
        case .counted:
            guard messages ?? used.messages == used.countedMessages else { throw .conflict }
            return replayed(used, user: user, at: now)
        case .held: break
        }
        guard used.isActive(at: now), let row = rows[user]?[used.period] else { throw .expired }
        let messages = messages ?? used.messages
        guard messages <= used.messages else { throw .tooMany }
        keys[user]?[key]?.status = .counted
        keys[user]?[key]?.committedMessages = messages
        keys[user]?[key]?.generation = row.generation
        changeWindow(of: used, used: messages, user: user, at: now)
        var snapshot = snapshot(of: user, at: now)
        if snapshot.period == used.period {
            snapshot.used = min(snapshot.used + messages, UsageSnapshot.countMaximum)
            write(snapshot, of: user, isUsed: true, at: now)
        } else {
            rows[user]?[used.period]?.count = min(row.count + messages, UsageSnapshot.countMaximum)
            rows[user]?[used.period]?.updatedAt = now
            let current = snapshot
            snapshot = self.snapshot(of: user, in: used.period, at: now) ?? snapshot
            snapshot.window = current.window
            (snapshot.windowUsed, snapshot.windowHeld) = (current.windowUsed, current.windowHeld)
        }
        snapshot.denialReason = nil
        keys[user]?[key]?.committed = Numbers(snapshot)
        return Answer(user: user, status: .allowed, snapshot: snapshot)
    }

    /// `RELEASE`: gives back held or counted messages once. Never lowers a count of another generation.
    public mutating func release(_ user: UserID, key: MessageKey, at now: Instant) throws(KeyError) -> Answer {
        guard let used = keys[user]?[key] else { throw .unknownKey }
        var released = 0
        switch used.status {
        case .released:
            break
        case .held:
            released = used.isActive(at: now) ? used.messages : 0
        case .counted:
            if let row = rows[user]?[used.period], row.generation == used.generation {
                released = used.countedMessages
                rows[user]?[used.period]?.count = max(0, row.count - used.countedMessages)
                rows[user]?[used.period]?.released += used.countedMessages
                rows[user]?[used.period]?.updatedAt = now
            }
        }
        keys[user]?[key]?.status = .released
        if released > 0 {
            changeWindow(of: used, used: used.status == .held ? 0 : -released, user: user, at: now)
        }
        let snapshot = snapshot(of: user, at: now)
        if released > 0, used.period == snapshot.period { write(snapshot, of: user, isUsed: true, at: now) }
        return Answer(
            user: user,
            status: .ok,
            snapshot: snapshot,
            released: released,
            isRepeated: used.status == .released
        )
    }
}

extension ReferenceModel {
    /// Messages that a user holds in a period, at most `UsageSnapshot.countMaximum`.
    func held(by user: UserID, in period: BillingPeriod, at now: Instant) -> Int {
        let active = (keys[user] ?? [:]).values.filter { $0.period == period && $0.isActive(at: now) }
        return min(active.reduce(0) { $0 + $1.messages }, UsageSnapshot.countMaximum)
    }

    private mutating func store(
        _ key: MessageKey,
        _ verb: UsedKey.Verb,
        messages: Int,
        as answer: Answer,
        expiresAt: Instant?
    ) {
        let snapshot = answer.snapshot
        keys[answer.user, default: [:]][key] = UsedKey(
            verb: verb,
            messages: messages,
            period: snapshot.period,
            generation: rows[answer.user]?[snapshot.period]?.generation ?? 0,
            windowOpenedAt: snapshot.window?.openedAt,
            status: verb == .consume ? .counted : .held,
            first: Numbers(snapshot),
            expiresAt: expiresAt
        )
    }

    private func replay(
        _ used: UsedKey,
        _ verb: UsedKey.Verb,
        messages: Int,
        user: UserID,
        at now: Instant
    ) throws(KeyError) -> Answer {
        if used.status == .released { throw .released }
        guard used.verb == verb, used.messages == messages else { throw .conflict }
        if used.status == .held, !used.isActive(at: now) { throw .expired }
        var first = used
        first.committed = nil
        return replayed(first, user: user, at: now)
    }

    /// The first outcome, or that of the commit if there was one. The user had access then, so there is no denial
    /// reason.
    private func replayed(_ used: UsedKey, user: UserID, at now: Instant) -> Answer {
        var snapshot = snapshot(of: user, in: used.period, at: now) ?? snapshot(of: user, at: now)
        let numbers = used.committed ?? used.first
        snapshot.period = used.period
        snapshot.denialReason = nil
        snapshot.used = numbers.used
        snapshot.held = numbers.held
        snapshot.limit = numbers.limit
        let open = self.snapshot(of: user, at: now).window
        let isOpen = used.windowOpenedAt != nil && open?.openedAt == used.windowOpenedAt
        snapshot.window = numbers.windowLimit.map {
            UsageWindow(limit: $0, openedAt: isOpen ? open?.openedAt : nil, endsAt: isOpen ? open?.endsAt : nil)
        }
        (snapshot.windowUsed, snapshot.windowHeld) = (numbers.windowUsed, numbers.windowHeld)
        let isHeld = used.verb == .reserve && used.committed == nil
        return Answer(
            user: user,
            status: isHeld ? .held : .allowed,
            snapshot: snapshot,
            isShadow: used.committed == nil && snapshot.isBeyondUnenforcedLimit,
            isRepeated: true
        )
    }
}
