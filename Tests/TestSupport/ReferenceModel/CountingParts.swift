/// A plan's limit for the messages with a model, or with one of the models whose names begin alike, or of each member.
struct PartLimit {
    /// `model` or `member`.
    var kind: String
    /// A name, or its beginning and an asterisk.
    var name: String
    /// Nil is unlimited.
    var allowance: Int?
    var window: (messages: Int, seconds: Int)?
    /// How many of the other allowances a message takes.
    var weight = 1
    /// The model to offer when this one refuses.
    var fallback: String?
}

extension PlanRules {
    /// The one with exactly this name, or else with the longest beginning of it.
    func limit(of kind: String, _ name: String) -> PartLimit? {
        let own = limits.filter { $0.kind == kind }
        let alike = own.filter { $0.name.hasSuffix("*") && name.hasPrefix($0.name.dropLast()) }
        return own.first { $0.name == name } ?? alike.max { $0.name.count < $1.name.count }
    }
}

extension CountingModel {
    /// The model and the member that a request names.
    struct Parts: Hashable {
        var model: String?
        var member: String?

        /// Kinds and names, the model first.
        var named: [(kind: String, name: String)] {
            [("model", model), ("member", member)].compactMap { kind, name in name.map { (kind, $0) } }
        }
    }

    /// What has a count of its own: the models of a limit, or a member.
    struct Counter: Hashable { var kind: String, name: String }

    /// A key's messages in the count of a part.
    struct Share { var weight: Int, window: Int?, isInRow = true }
}

extension CountingModel.Allowance {
    /// Whether it counts the same as another one, perhaps at another time.
    func isSame(as other: CountingModel.Allowance) -> Bool {
        name == other.name && counter == other.counter && (seconds == nil) == (other.seconds == nil)
    }
}

extension CountingModel.Key {
    /// Of the account's messages.
    var taken: Int { messages * weight }

    /// Of a part's messages.
    func taken(of counter: CountingModel.Counter) -> Int { messages * (shares[counter]?.weight ?? 0) }

    /// When the window of an allowance opened, in which the messages count.
    func window(of allowance: CountingModel.Allowance) -> Int? {
        guard let counter = allowance.counter else { return window }
        return shares[counter]?.window
    }
}

extension CountingModel {
    /// The usage of the account and of the parts that a request names. A message takes of the account and of the member
    /// what the model weighs. A part without a limit is not counted.
    func naming(_ parts: Parts, in account: Reply, hasFallback: Bool = true) -> Reply {
        var reply = account
        reply.parts = parts
        let model = parts.model.flatMap { account.plan.limit(of: "model", $0) }
        for index in reply.allowances.indices { reply.allowances[index].weight = model?.weight ?? 1 }
        for (kind, name) in parts.named {
            guard let limit = account.plan.limit(of: kind, name) else { continue }
            let counter = Counter(kind: kind, name: kind == "model" ? limit.name : name)
            let used = rows[account.period]?.parts[counter] ?? 0
            var allowance = Allowance(name: kind, used: used, limit: limit.allowance, renewed: limit.allowance)
            (allowance.opened, allowance.resets) = (account.allowances[0].opened, account.allowances[0].resets)
            allowance.held = held { $0.period == account.period ? $0.taken(of: counter) : 0 }
            var both = [allowance]
            if let window = limit.window {
                let closed = Allowance(name: kind, limit: window.messages)
                both.append(
                    open(closed, window.seconds, windows[counter]) { key, opened in
                        key.shares[counter]?.window == opened ? key.taken(of: counter) : 0
                    }
                )
            }
            reply.allowances += both.map { allowance in
                var allowance = allowance
                (allowance.counter, allowance.weight) = (counter, kind == "model" ? 1 : model?.weight ?? 1)
                return allowance
            }
        }
        if hasFallback, let fallback = model?.fallback {
            let other = naming(Parts(model: fallback, member: parts.member), in: account, hasFallback: false)
            reply.fallback = (fallback, other.allowances)
        }
        return reply
    }

    /// The allowance of a window of some seconds, with what is used in the last one if that is still open, and what
    /// holds take of it.
    func open(_ closed: Allowance, _ seconds: Int, _ last: Window?, _ taken: (Key, Int) -> Int) -> Allowance {
        var allowance = closed
        (allowance.renewed, allowance.seconds) = (closed.limit, seconds)
        if let open = last?.shortened(to: seconds), open.ends > now {
            (allowance.used, allowance.held) = (open.used, held { taken($0, open.opened) })
            (allowance.opened, allowance.resets) = (open.opened, open.ends)
        }
        return allowance
    }

    /// A key's part in each count, after its messages were counted or held.
    func shares(_ reply: Reply) -> [Counter: Share] {
        var shares: [Counter: Share] = [:]
        for allowance in reply.allowances {
            guard let counter = allowance.counter else { continue }
            let window = allowance.seconds == nil ? shares[counter]?.window : allowance.opened
            shares[counter] = Share(weight: allowance.weight, window: window)
        }
        return shares
    }

    /// A message's counts of parts, with the windows that it has opened.
    mutating func writeParts(_ reply: Reply) {
        for allowance in reply.allowances {
            guard let counter = allowance.counter else { continue }
            if allowance.seconds == nil {
                rows[reply.period]?.parts[counter] = allowance.used
            } else if let opened = allowance.opened, let ends = allowance.resets {
                windows[counter] = Window(opened: opened, ends: ends, used: allowance.used, period: reply.period)
            }
        }
    }

    /// Changes the counts in which a key's messages are, in their period and in their windows.
    mutating func changeParts(_ key: Key, by messages: Int) {
        for (counter, share) in key.shares where share.isInRow {
            func changed(_ count: Int) -> Int { min(max(0, count + messages * share.weight), .countMaximum) }
            if let count = rows[key.period]?.parts[counter] { rows[key.period]?.parts[counter] = changed(count) }
            if let window = windows[counter], window.opened == share.window {
                windows[counter]?.used = changed(window.used)
            }
        }
    }

    /// RESETUSAGE of parts alone, as of all. What was counted before is not given back to the part again.
    mutating func resetParts(_ counters: some Sequence<Counter>, in period: String) {
        for counter in counters {
            rows[period]?.parts[counter] = 0
            for (name, key) in keys where key.period == period { keys[name]?.shares[counter]?.isInRow = false }
        }
    }

    mutating func closeWindows(_ counters: some Sequence<Counter>, _ isClosed: (Window) -> Bool) {
        for counter in counters {
            guard let window = windows[counter], isClosed(window) else { continue }
            windows[counter] = nil
            for (name, key) in keys where key.shares[counter]?.window == window.opened {
                keys[name]?.shares[counter]?.window = nil
            }
        }
    }
}
