extension Int {
    /// In microseconds.
    static let second = 1_000_000
    static let day = 86_400 * second
    /// Counts stop at the largest `integer` of PostgreSQL.
    static let countMaximum = 2_147_483_647
}

// MARK: What a user has
extension CountingModel {
    /// The usage in the open period.
    func usage() -> Reply {
        let subscription = known
        let plan = plan(of: subscription)
        let isDenied = self.subscription == nil && unknownUsers == "deny"
        let (state, access) = subscription.state(under: plan, at: now)
        let cycle = openCycle(plan, subscription.anchorDay ?? 1)
        let period = cycle?.label ?? plan.name
        let row = rows[period]
        var limit = plan.allowance.map { min($0 + (row?.granted ?? 0), .countMaximum) }
        if let row, row.planLimit == plan.allowance { limit = row.usage.allowances[0].limit }
        var reply = Reply(
            plan: plan,
            state: state,
            access: isDenied ? "no_subscription" : access,
            period: period,
            now: now,
            expires: subscription.accessEnd(under: plan),
            previousPlan: access != nil && plan.isPeriodic ? plan.name : subscription.previousPlan
        )
        let used = (row?.used ?? 0) + (isDenied ? 0 : spent[period] ?? 0)
        let opened = cycle?.start ?? subscription.started ?? now
        var allowance = Allowance(name: "period", used: used, limit: limit, renewed: plan.allowance)
        (allowance.held, allowance.opened, allowance.resets) = (held { $0.period == period }, opened, cycle?.end)
        reply.allowances = [allowance]
        if let (limit, seconds) = plan.window {
            var allowance = Allowance(name: "window", limit: limit, renewed: limit, seconds: seconds)
            if let open = window?.shortened(to: seconds), open.ends > now {
                (allowance.used, allowance.held) = (open.used, held { $0.window == open.opened })
                (allowance.opened, allowance.resets) = (open.opened, open.ends)
            }
            reply.allowances.append(allowance)
        }
        return reply
    }

    /// The usage in a period with a row. Every period but the open one is over.
    func usage(in period: String) -> Reply? {
        let open = usage()
        guard var reply = rows[period]?.usage, period != open.period else { return rows[period] == nil ? nil : open }
        (reply.plan, reply.access, reply.now) = (plans[reply.plan.name]!, nil, now)
        reply.allowances = [reply.allowances[0]]
        reply.allowances[0].held = held { $0.period == period }
        reply.allowances[0].resets = min(reply.allowances[0].resets ?? now, now)
        return reply
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
        let isChanged = row.wasLowered || row.granted > 0 || row.usage.allowances[0].limit != row.planLimit
        let hasWindow = window.map { $0.period == period && $0.ends > now } ?? false
        return row.used == 0 && !isChanged && !hasWindow && held { $0.period == period } == 0
    }

    func isActive(_ key: Key) -> Bool { key.status == "held" && now < key.ends ?? .min }

    private func held(_ isIn: (Key) -> Bool) -> Int {
        keys.values.filter { isActive($0) && isIn($0) }.map(\.messages).reduce(0, +)
    }
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
        if isUse { row.usedAt = now }
        rows[reply.period] = row
        if let open = reply.window, let opened = open.opened, let ends = open.resets {
            window = Window(opened: opened, ends: ends, used: open.used, period: reply.period)
        } else if reply.window != nil, window?.period == reply.period {
            window = nil
        }
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

    /// RESETUSAGE, which closes the window too if the period is open or has it. Nil if the named period has no row.
    mutating func reset(_ named: String?) -> Reply? {
        if let named, rows[named] == nil, spent[named] == nil { return nil }
        restoreSpent()
        let open = usage().period
        let period = named ?? open
        if let window, window.period == period || period == open && window.ends > now { close(window) }
        setCount(0, in: period)
        rows[period]?.usedAt = now
        return usage(in: period) ?? usage()
    }

    mutating func closeWindow() -> Reply {
        restoreSpent()
        if let window, window.ends > now { close(window) }
        return usage()
    }

    private mutating func close(_ closed: Window) {
        window = nil
        for (name, key) in keys where key.window == closed.opened { keys[name]?.window = nil }
    }

    /// An operator's UPDATE of a count. What was counted before a lower count is not given back again.
    mutating func setCount(_ count: Int, in period: String) {
        guard let row = rows[period] else { return }
        rows[period]?.usage.allowances[0].used = count
        guard count < row.used else { return }
        rows[period]?.wasLowered = true
        for (name, key) in keys where key.period == period { keys[name]?.isInRow = false }
    }

    /// An operator's DELETE, which ends the holds of the period.
    mutating func deleteRow(_ period: String) {
        rows[period] = nil
        if window?.period == period { window = nil }
        for (name, key) in keys where key.period == period {
            keys[name]?.isInRow = false
            keys[name]?.ends = nil
        }
    }

    /// GRANT raises the limit of the open period, once for each key.
    mutating func grant(_ messages: Int, key: String) throws(Failure) -> Reply {
        if let granted = grants[key], granted != messages { throw .conflict }
        var reply = usage()
        reply.outcome.isRepeated = grants[key] != nil
        if reply.outcome.isRepeated { return reply }
        let granted = (rows[reply.period]?.granted ?? 0) + messages
        guard max(granted, messages + (reply.allowances[0].limit ?? 0)) <= .countMaximum else { throw .tooLarge }
        restoreSpent()
        reply = usage()
        reply.allowances[0].limit = reply.allowances[0].limit.map { $0 + messages }
        grants[key] = messages
        let window = window
        write(reply)
        self.window = window
        rows[reply.period]?.granted = granted
        return reply
    }
}
