import Usage

/// The parts of the messages.
extension UserTransaction {
    /// The rows that decide the requests: of the limits that they name, and of those of their keys. A window is in the
    /// open period's row.
    func partKeys(of requests: ArraySlice<BatchedRequest>) -> Set<PartKey> {
        let period = snapshot.period
        var wanted = Set(requests.partIDs(snapshot.plan).map { PartKey(period: period, id: $0) })
        for key in keys.values {
            guard let parts = key.parts else { continue }
            if let named = parts.named {
                wanted.formUnion(PartID.all(of: named, snapshot.plan).map { PartKey(period: period, id: $0) })
            }
            for (id, _) in parts.counted {
                wanted.formUnion([PartKey(period: key.period, id: id), PartKey(period: period, id: id)])
            }
        }
        return wanted
    }

    func openParts(_ named: MessageParts?) -> UserParts? {
        named == nil ? nil : UserParts(parts, in: snapshot.period)
    }

    /// Decides a request that changes nothing.
    func charging<Decision>(
        _ named: MessageParts?,
        _ decide: (inout UsageSnapshot) -> Decision
    ) -> Decision {
        var (snapshot, counters) = (snapshot, openParts(named))
        return snapshot.charging(named, &counters, decide)
    }

    /// The parts as they are after the requests that were decided so far.
    func presentParts(_ named: MessageParts?) -> [PartUsage] { charging(named) { $0.parts } }

    /// The parts of a key in its period, with the limits of that period's plan.
    func parts(_ named: MessageParts, of key: UsedKey) -> [PartUsage] {
        guard key.period != snapshot.period, let past = pastUsage[key.period] else { return presentParts(named) }
        var (shown, counters) = (snapshot, Optional(UserParts(parts, in: key.period)))
        shown.plan = past.plan ?? shown.plan
        return shown.charging(named, &counters) { $0.parts }
    }

    /// Keeps what became of the counters while messages were counted, or held until an instant.
    mutating func keep(_ counters: UserParts?, holdsEndAt: Instant?) {
        guard let table = counters?.counters else { return }
        for (id, counter) in table.entries {
            let key = PartKey(period: snapshot.period, id: id)
            guard var part = parts[key], part.counter != counter else { continue }
            part.counter = counter
            if let holdsEndAt { part.holdsEndAt = min(part.holdsEndAt ?? holdsEndAt, holdsEndAt) }
            part.isChanged = true
            parts[key] = part
        }
    }

    /// Changes the counters in which a key was counted or held. Messages of a counter that was reset since are not in
    /// it any more, and a window of another instant is another one.
    ///
    /// - Parameters:
    ///   - used: messages of the user to add; what was counted is given back if it is negative.
    ///   - held: messages of the user to add.
    mutating func changeParts(of key: UsedKey, used: Int, held: Int) {
        guard let keyParts = key.parts else { return }
        for (id, part) in keyParts.counted {
            let (used, held) = (keyParts.messages(used, of: id.kind), keyParts.messages(held, of: id.kind))
            change(PartKey(period: key.period, id: id)) { stored in
                guard used >= 0 || stored.generation == part.generation else { return }
                stored.counter.used = max(stored.counter.used + used, 0)
                stored.counter.held = max(stored.counter.held + held, 0)
            }
            change(PartKey(period: snapshot.period, id: id)) { stored in
                guard let openedAt = part.window, stored.counter.windowOpenedAt?.microsecondsSince1970 == openedAt
                else {
                    return
                }
                stored.counter.windowUsed = max(stored.counter.windowUsed + used, 0)
                stored.counter.windowHeld = max(stored.counter.windowHeld + held, 0)
            }
        }
        guard key.period == snapshot.period, let named = keyParts.named else { return }
        // As a message does, it ends windows earlier for good if the plan's have become shorter.
        for usage in presentParts(named) {
            guard let limit = usage.limit, limit.window != nil, let endsAt = usage.counter.windowEndsAt else {
                continue
            }
            change(PartKey(period: snapshot.period, id: PartID(usage.part, limit))) {
                $0.counter.windowEndsAt = endsAt
            }
        }
    }

    private mutating func change(_ key: PartKey, _ change: (inout StoredPart) -> Void) {
        guard var part = parts[key] else { return }
        change(&part)
        guard part != parts[key] else { return }
        part.isChanged = true
        parts[key] = part
    }
}
