extension CountingModel {
    /// Messages that an operator has granted, and when they end: `Int.max` is never, and nil with their period.
    struct Granted: Equatable { var messages: Int, ends: Int? = nil }

    /// Granted messages that do not end with a period.
    struct Balance { var key: String, messages: Int, ends: Int, granted: Int, counted = 0 }

    /// In the order in which messages are taken from them.
    private var ordered: [Balance] { balances.sorted { ($0.ends, $0.granted, $0.key) < ($1.ends, $1.granted, $1.key) } }

    /// Neither counted nor held.
    private func left(_ balance: Balance) -> Int {
        balance.ends > now ? balance.messages - balance.counted - held { $0.charges[balance.key] ?? 0 } : 0
    }

    /// What the holds of a period take of balances.
    func heldOfBalances(in period: String) -> Int {
        held { $0.period == period ? $0.charges.values.reduce(0, +) : 0 }
    }

    /// The allowance of the open period with what is left in balances, which its next one has, too.
    func extended(_ allowance: Allowance) -> Allowance {
        var allowance = allowance
        let usable = ordered.filter { left($0) > 0 }
        allowance.extra = usable.map { left($0) }.reduce(0, +)
        allowance.extraEnds = usable.first.flatMap { $0.ends == .max ? nil : $0.ends }
        allowance.renewed = allowance.renewed.map { $0 + allowance.extra }
        return allowance
    }

    /// Takes the newest messages from balances as far as they are beyond the limit without these.
    mutating func pay(_ messages: Int, isHeld: Bool, in reply: inout Reply) {
        guard let plain = reply.allowances[0].plain else { return }
        var beyond = min(max(0, reply.allowances[0].taken - plain), messages)
        for balance in ordered where beyond > 0 && left(balance) > 0 {
            let paid = min(beyond, left(balance))
            reply.outcome.charges[balance.key] = paid
            reply.allowances[0].plain! += paid
            beyond -= paid
        }
        let charges = reply.outcome.charges
        if !isHeld { changeBalances(charges, in: reply.period, by: 1) }
        let renewed = reply.allowances[0].renewed
        reply.allowances[0] = extended(reply.allowances[0])
        reply.allowances[0].renewed = renewed
        guard isHeld else { return }
        // The key that holds them is not known yet.
        reply.allowances[0].extra -= charges.values.reduce(0, +)
        let first = ordered.first { left($0) > charges[$0.key] ?? 0 }
        reply.allowances[0].extraEnds = first.flatMap { $0.ends == .max ? nil : $0.ends }
    }

    /// Counts what a key has taken from balances, or takes it back.
    mutating func changeBalances(_ charges: [String: Int], in period: String, by sign: Int) {
        for index in balances.indices { balances[index].counted += sign * (charges[balances[index].key] ?? 0) }
        let messages = sign * charges.values.reduce(0, +)
        rows[period]?.granted += messages
        if let plain = rows[period]?.usage.allowances[0].plain {
            rows[period]?.usage.allowances[0].plain = plain + messages
        }
    }

    /// Held messages that are not counted go back to balances first, to the one that ends last before the others.
    func giveBack(_ messages: Int, of key: inout Key) {
        var messages = messages
        for balance in ordered.reversed() {
            let given = min(messages, key.charges[balance.key] ?? 0)
            key.charges[balance.key] = (key.charges[balance.key] ?? 0) - given
            messages -= given
        }
        key.charges = key.charges.filter { $0.value > 0 }
    }

    /// GRANT with an end.
    mutating func grantBalance(_ messages: Int, key: String, ends: Int) throws(Failure) -> Reply {
        guard ends > now else { throw .past }
        let open = usage()
        let most = max(rows[open.period]?.granted ?? 0, open.allowances[0].plain ?? 0)
        guard most + messages <= .countMaximum else { throw .tooLarge }
        restoreSpent()
        let window = window
        write(usage())
        self.window = window
        grants[key] = Granted(messages: messages, ends: ends)
        balances.append(Balance(key: key, messages: messages, ends: ends, granted: now))
        return usage()
    }
}

extension CountingModel.Allowance {
    init(name: String, used: Int = 0, limit: Int?, renewed: Int? = nil, opened: Int? = nil) {
        self.init(name: name)
        (self.used, plain, self.renewed, self.opened) = (used, limit, renewed, opened)
    }
}
