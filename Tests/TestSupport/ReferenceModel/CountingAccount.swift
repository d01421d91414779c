extension Int {
    /// In microseconds.
    static let second = 1_000_000
    static let day = 86_400 * second
    /// Counts stop at the largest `integer` of PostgreSQL.
    static let countMaximum = 2_147_483_647
}

// MARK: What a user has
extension CountingModel {
    /// The usage in the open period, with that of the parts that a request names.
    func usage(_ parts: Parts = Parts()) -> Reply {
        let subscription = known
        let plan = plan(of: subscription)
        let isDenied = self.subscription == nil && unknownUsers == "deny"
        let (state, access) = subscription.state(under: plan, at: now)
        let cycle = openCycle(plan, subscription.anchorDay ?? 1)
        let period = cycle?.label ?? plan.name
        let row = rows[period]
        var limit = plan.allowance.map { min($0 + (row?.granted ?? 0), .countMaximum) }
        if let row, row.planLimit == plan.allowance { limit = row.usage.allowances[0].plain }
        limit = limit.map { min($0 + heldOfBalances(in: period), .countMaximum) }
        var reply = Reply(
            plan: plan,
            state: state,
            access: isDenied ? "no_subscription" : access,
            period: period,
            now: now,
            expires: subscription.accessEnd(under: plan),
            renews: subscription.renews,
            previousPlan: access != nil && plan.isPeriodic ? plan.name : subscription.previousPlan
        )
        let used = (row?.used ?? 0) + (isDenied ? 0 : spent[period] ?? 0)
        let opened = cycle?.start ?? subscription.started ?? now
        var allowance = Allowance(name: "period", used: used, limit: limit, renewed: plan.allowance)
        (allowance.held, allowance.opened, allowance.resets) = (held(in: period), opened, cycle?.end)
        reply.allowances = [extended(allowance)]
        if let (limit, seconds) = plan.window {
            let closed = Allowance(name: "window", limit: limit)
            reply.allowances.append(open(closed, seconds, window) { $0.window == $1 ? $0.taken : 0 })
        }
        return naming(parts, in: reply)
    }

    /// The usage in a period with a row. Every period but the open one is over.
    func usage(_ parts: Parts = Parts(), in period: String) -> Reply? {
        let open = usage(parts)
        guard var reply = rows[period]?.usage, period != open.period else { return rows[period] == nil ? nil : open }
        (reply.plan, reply.access, reply.now) = (plans[reply.plan.name]!, nil, now)
        reply.allowances = [reply.allowances[0]]
        reply.allowances[0].held = held(in: period)
        reply.allowances[0].plain = reply.allowances[0].plain.map { $0 + heldOfBalances(in: period) }
        reply.allowances[0].resets = min(reply.allowances[0].resets ?? now, now)
        return naming(parts, in: reply)
    }

    /// HISTORY, the period that ends last first.
    func history() -> [Reply] {
        let open = usage()
        let ends = rows.map { period, row in
            let usage = period == open.period ? open : row.usage
            return (usage.allowances[0].resets ?? usage.expires ?? row.usedAt, period)
        }
        return ends.sorted { $0 > $1 }.compactMap { usage(in: $0.1) }
    }

    /// The subscription, or what an unknown user gets.
    private var known: Subscription {
        let plan = unknownUsers == "trial" ? "trial" : "free"
        let start = plan == "trial" ? trialStart : nil
        let unknown = Subscription(plan: plan, started: start ?? now, paidUntil: plan == "trial" ? trialEnd : nil)
        return subscription ?? unknown
    }

    private func plan(of subscription: Subscription) -> PlanRules {
        var plan = plans[subscription.plan]!
        if self.subscription == nil && unknownUsers == "deny" { plan.allowance = 0 }
        return plan
    }

    /// The cycle of now, or a later one that is in use: no change of an anchor day or time zone starts one again.
    private func openCycle(_ plan: PlanRules, _ anchorDay: Int) -> Cycle? {
        guard let cycle = plan.cycle(at: now, anchorDay) else { return nil }
        let next = plan.cycle(at: cycle.end, anchorDay)!
        let later = plan.cycle == "daily" ? [plan.cycle(at: next.end, anchorDay)!, next] : [next]
        return later.first { !isUnused($0.label) } ?? cycle
    }

    /// Whether a row has nothing that does not follow from the subscription.
    func isUnused(_ period: String) -> Bool {
        guard let row = rows[period] else { return true }
        let isChanged = row.wasLowered || row.granted > 0 || row.usage.allowances[0].plain != row.planLimit
        let hasWindow = window.map { $0.period == period && $0.ends > now } ?? false
        return row.used == 0 && !isChanged && !hasWindow && held(in: period) == 0
    }

    func isActive(_ key: Key) -> Bool { key.status == "held" && now < key.ends ?? .min }

    /// What the active holds take of a count.
    func held(_ taken: (Key) -> Int) -> Int { keys.values.filter(isActive).map(taken).reduce(0, +) }

    private func held(in period: String) -> Int { held { $0.period == period ? $0.taken : 0 } }
}

// MARK: What is written
extension CountingModel {
    /// The first use of an unknown user starts a trial or the free plan.
    mutating func write(_ reply: Reply, isUse: Bool = false) {
        if isUse, subscription == nil {
            restoreSpent()
            if unknownUsers != "deny" { subscription = known }
            if unknownUsers == "trial" { trialStart = reply.allowances[0].opened }
        }
        var row = rows[reply.period] ?? Row(usage: reply, usedAt: now)
        (row.usage, row.planLimit) = (reply, plan(of: known).allowance)
        row.usage.outcome = Outcome()
        row.usage.allowances[0].plain = reply.allowances[0].plain.map { $0 - heldOfBalances(in: reply.period) }
        (row.usage.allowances[0].extra, row.usage.allowances[0].extraEnds) = (0, nil)
        if isUse { row.usedAt = now }
        rows[reply.period] = row
        if isUse { writeParts(reply) }
        if let open = reply.window, let opened = open.opened, let ends = open.resets {
            window = Window(opened: opened, ends: ends, used: open.used, period: reply.period)
        } else if reply.window != nil, window?.period == reply.period {
            window = nil
        }
    }

    /// A request that counts nothing writes the row, too, if the plan has changed since: a limit that an operator sets
    /// afterwards is one of the present plan.
    mutating func updateOpenRow() {
        let open = usage()
        if open.access == nil, rows[open.period] != nil { write(open) }
    }

    mutating func changeRow(_ period: String, by messages: Int) {
        rows[period]?.usage.allowances[0].add(messages, to: \.used)
        rows[period]?.usedAt = now
        if messages < 0 { rows[period]?.wasLowered = true }
    }

    /// Changes the window that opened at an instant, if it is still open.
    mutating func changeWindow(_ opened: Int?, by messages: Int) {
        let reply = usage()
        guard var open = reply.window, let opened, open.opened == opened, let ends = open.resets else { return }
        open.add(messages, to: \.used)
        let period = rows[reply.period] == nil ? window!.period : reply.period
        window = Window(opened: opened, ends: ends, used: open.used, period: period)
    }

    /// RESETUSAGE of all, or of some parts alone. It closes the windows too if the period is open or has them. Nil if
    /// the named period has no row, or the plan no limit for one of the parts.
    mutating func reset(_ named: String?, _ parts: Parts? = nil) -> Reply? {
        if let named, rows[named] == nil, spent[named] == nil { return nil }
        guard let counters = counters(parts) else { return nil }
        restoreSpent()
        let open = usage().period
        let period = named ?? open
        let isClosed = { [now] (window: Window) in window.period == period || period == open && window.ends > now }
        closeWindows(counters, isClosed)
        resetParts(counters, in: period)
        if parts == nil {
            if let window, isClosed(window) { close(window) }
            setCount(0, in: period)
            rows[period]?.usedAt = now
        }
        return usage(parts ?? Parts(), in: period) ?? usage(parts ?? Parts())
    }

    /// Closes the account's window, or those of some parts alone. Nil if the plan has no limit for one of the parts.
    mutating func closeWindow(_ parts: Parts? = nil) -> Reply? {
        guard let counters = counters(parts) else { return nil }
        restoreSpent()
        if parts != nil {
            closeWindows(counters) { _ in true }
        } else if let window, window.ends > now {
            close(window)
        }
        return usage(parts ?? Parts())
    }

    /// Those of some parts in the present plan, nil if it has no limit for one; or all that have been counted.
    private func counters(_ parts: Parts?) -> Set<Counter>? {
        guard let parts else { return rows.values.reduce(into: Set(windows.keys)) { $0.formUnion($1.parts.keys) } }
        let counters = Set(usage(parts).allowances.compactMap(\.counter))
        return counters.count == parts.named.count ? counters : nil
    }

    private mutating func close(_ closed: Window) {
        window = nil
        for (name, key) in keys where key.window == closed.opened { keys[name]?.window = nil }
    }

    /// An operator's UPDATE of a count. What was counted before a lower count is not given back again.
    mutating func setCount(_ count: Int, in period: String) {
        guard let row = rows[period] else { return }
        var raised = usage()
        if raised.period == period, count > row.used {
            raised.allowances[0].used = count
            pay(count - row.used, isHeld: false, in: &raised)
        }
        rows[period]?.usage.allowances[0].used = count
        guard count < row.used else { return }
        rows[period]?.wasLowered = true
        for (name, key) in keys where key.period == period { keys[name]?.isInRow = false }
    }

    /// An operator's DELETE, which ends the holds of the period.
    mutating func deleteRow(_ period: String) {
        dropRow(period)
        if window?.period == period { window = nil }
        for (name, key) in keys where key.period == period {
            keys[name]?.isInRow = false
            keys[name]?.ends = nil
        }
    }

    /// With the parts and their windows.
    mutating func dropRow(_ period: String) {
        rows[period] = nil
        windows = windows.filter { $0.value.period != period }
    }

    /// GRANT raises the limit of the open period, or adds a balance, once for each key.
    mutating func grant(_ messages: Int, key: String, ends: Int? = nil) throws(Failure) -> Reply {
        if let granted = grants[key], granted != Granted(messages: messages, ends: ends) { throw .conflict }
        var reply = usage()
        reply.outcome.isRepeated = grants[key] != nil
        if reply.outcome.isRepeated { return reply }
        if let ends { return try grantBalance(messages, key: key, ends: ends) }
        let granted = (rows[reply.period]?.granted ?? 0) + messages
        guard max(granted, messages + (reply.allowances[0].plain ?? 0)) <= .countMaximum else { throw .tooLarge }
        restoreSpent()
        reply = usage()
        reply.allowances[0].plain = reply.allowances[0].plain.map { $0 + messages }
        grants[key] = Granted(messages: messages)
        let window = window
        write(reply)
        self.window = window
        rows[reply.period]?.granted = granted
        return usage()
    }
}
