/// Why a key cannot be used so.
public enum KeyError: Error, Sendable, Equatable {
    /// The key means another message: another verb or number of messages.
    case conflict
    /// What the key held or had counted was given back.
    case released
    /// The hold's time has passed, or its row is gone; nothing was counted.
    case expired
    case unknownKey
}

extension ReferenceModel {
    /// A row of `headroom.message_keys`: the caller's name for one message, and the first outcome.
    struct KnownKey: Sendable {
        enum Verb: Sendable { case consume, reserve }
        enum Status: Sendable { case counted, held, released }

        var verb: Verb
        var messages: Int
        var period: BillingPeriod
        /// Of the row in which the message was counted.
        var generation: Int
        /// A hold whose time has passed stays held, and holds nothing.
        var status: Status
        /// The numbers that the first request was told.
        var first: Numbers
        /// The numbers that the first commit was told.
        var committed: Numbers?
        /// End of a hold; nil where there is none, or none any more.
        var expiresAt: Instant?

        func isLive(at now: Instant) -> Bool {
            status == .held && expiresAt.map { now < $0 } ?? false
        }
    }

    /// What a repetition tells again.
    struct Numbers: Sendable {
        var used: Int
        var held: Int
        var limit: Int?
    }

    /// `CONSUME` with a key: counts once, however often it is asked.
    public mutating func consume(
        _ user: UserID,
        messages: Int = 1,
        key: MessageKey,
        at now: Instant
    ) throws(KeyError) -> Answer {
        if let known = keys[user]?[key] {
            return try replay(known, .consume, messages: messages, user: user, at: now)
        }
        let answer = consume(user, messages: messages, at: now)
        if answer.status == .allowed {
            remember(key, .consume, messages: messages, as: answer, expiresAt: nil)
        }
        return answer
    }

    /// `RESERVE`: holds the messages until they are committed, released, or so many seconds have passed.
    public mutating func reserve(
        _ user: UserID,
        messages: Int = 1,
        key: MessageKey,
        ttlSeconds: Int = 120,
        at now: Instant
    ) throws(KeyError) -> Answer {
        if let known = keys[user]?[key] {
            return try replay(known, .reserve, messages: messages, user: user, at: now)
        }
        var snapshot = snapshot(of: user, at: now)
        if let refusal = snapshot.refusal(of: messages) {
            if snapshot.denialReason == nil, rows[user]?[snapshot.period] != nil {
                write(snapshot, of: user, isUsed: false, at: now)
            }
            return snapshot.blocked(refusal, messages: messages, user: user)
        }
        let before = snapshot.tier
        write(snapshot, of: user, isUsed: true, at: now)
        snapshot.held = min(snapshot.held + messages, UsageSnapshot.countMaximum)
        let crossed = snapshot.tier > before ? snapshot.tier : nil
        let answer = Answer(user: user, status: .held, snapshot: snapshot, crossed: crossed)
        let expiresAt = now.advanced(bySeconds: Int64(ttlSeconds))
        remember(key, .reserve, messages: messages, as: answer, expiresAt: expiresAt)
        return answer
    }

    /// `COMMIT`: counts what the key holds, in the period in which it was held; also for a user whose access has ended
    /// since.
    public mutating func commit(_ user: UserID, key: MessageKey, at now: Instant) throws(KeyError) -> Answer {
        guard let known = keys[user]?[key] else { throw .unknownKey }
        guard known.verb == .reserve else { throw .conflict }
        switch known.status {
        case .released: throw .released
        case .counted: return replayed(known, user: user, at: now)
        case .held: break
        }
        guard known.isLive(at: now), let row = rows[user]?[known.period] else { throw .expired }
        keys[user]?[key]?.status = .counted
        keys[user]?[key]?.generation = row.generation
        var snapshot = snapshot(of: user, at: now)
        if snapshot.period == known.period {
            snapshot.used = min(snapshot.used + known.messages, UsageSnapshot.countMaximum)
            write(snapshot, of: user, isUsed: true, at: now)
        } else {
            rows[user]?[known.period]?.count = min(row.count + known.messages, UsageSnapshot.countMaximum)
            rows[user]?[known.period]?.updatedAt = now
            snapshot = self.snapshot(of: user, in: known.period, at: now) ?? snapshot
        }
        snapshot.denialReason = nil
        keys[user]?[key]?.committed = Numbers(used: snapshot.used, held: snapshot.held, limit: snapshot.limit)
        return Answer(user: user, status: .allowed, snapshot: snapshot)
    }

    /// `RELEASE`: gives back what the key holds or has counted, once, and never to a count that it was not in.
    public mutating func release(_ user: UserID, key: MessageKey, at now: Instant) throws(KeyError) -> Answer {
        guard let known = keys[user]?[key] else { throw .unknownKey }
        var released = 0
        switch known.status {
        case .released:
            break
        case .held:
            released = known.isLive(at: now) ? known.messages : 0
        case .counted:
            if let row = rows[user]?[known.period], row.generation == known.generation {
                released = known.messages
                rows[user]?[known.period]?.count = max(0, row.count - known.messages)
                rows[user]?[known.period]?.released += known.messages
                rows[user]?[known.period]?.updatedAt = now
            }
        }
        keys[user]?[key]?.status = .released
        let snapshot = snapshot(of: user, at: now)
        if released > 0, known.period == snapshot.period { write(snapshot, of: user, isUsed: true, at: now) }
        return Answer(
            user: user,
            status: .ok,
            snapshot: snapshot,
            released: released,
            isReplay: known.status == .released
        )
    }
}

extension ReferenceModel {
    /// Messages that a user holds in a period; the sum stops where a count does.
    func held(by user: UserID, in period: BillingPeriod, at now: Instant) -> Int {
        let live = (keys[user] ?? [:]).values.filter { $0.period == period && $0.isLive(at: now) }
        return min(live.reduce(0) { $0 + $1.messages }, UsageSnapshot.countMaximum)
    }

    private mutating func remember(
        _ key: MessageKey,
        _ verb: KnownKey.Verb,
        messages: Int,
        as answer: Answer,
        expiresAt: Instant?
    ) {
        let snapshot = answer.snapshot
        keys[answer.user, default: [:]][key] = KnownKey(
            verb: verb,
            messages: messages,
            period: snapshot.period,
            generation: rows[answer.user]?[snapshot.period]?.generation ?? 0,
            status: verb == .consume ? .counted : .held,
            first: Numbers(used: snapshot.used, held: snapshot.held, limit: snapshot.limit),
            expiresAt: expiresAt
        )
    }

    private func replay(
        _ known: KnownKey,
        _ verb: KnownKey.Verb,
        messages: Int,
        user: UserID,
        at now: Instant
    ) throws(KeyError) -> Answer {
        guard known.verb == verb, known.messages == messages else { throw .conflict }
        var first = known
        first.committed = nil
        return replayed(first, user: user, at: now)
    }

    /// The first outcome again, of the commit where there was one. Whatever became of the user's access since, it was
    /// allowed then.
    private func replayed(_ known: KnownKey, user: UserID, at now: Instant) -> Answer {
        var snapshot = snapshot(of: user, in: known.period, at: now) ?? snapshot(of: user, at: now)
        let numbers = known.committed ?? known.first
        snapshot.period = known.period
        snapshot.denialReason = nil
        snapshot.used = numbers.used
        snapshot.held = numbers.held
        snapshot.limit = numbers.limit
        let isHeld = known.verb == .reserve && known.committed == nil
        return Answer(user: user, status: isHeld ? .held : .allowed, snapshot: snapshot, isReplay: true)
    }
}
