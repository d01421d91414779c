/// The counting rules for one user, stated a second time for tests: plain values, and no type of the service.
/// Instants are microseconds since 1970. States, tiers and reasons have the protocol's names.
public struct CountingModel: Sendable {
    /// Set before each request: the clock, the plans, and what users without a subscription get.
    var now = 0
    var plans: [String: PlanRules] = [:]
    var unknownUsers = "trial"

    var subscription: Subscription?
    var rows: [String: Row] = [:]
    var keys: [String: Key] = [:]
    var window: Window?
    /// The last windows of parts.
    var windows: [Counter: Window] = [:]
    var grants: [String: Granted] = [:]
    var balances: [Balance] = []
    /// FORGET keeps these, so that neither a trial nor an allowance that never resets starts again.
    var trialStart: Int?
    var trialEnd: Int?
    var spent: [String: Int] = [:]

    public enum Failure: Error {
        case conflict, released, expired, tooMany, unknownKey, unknownPlan, stateDoesNotFit, tooLarge, past
    }
}

extension CountingModel {
    /// What may be sent until something resets. A message must fit into each of a list of them.
    struct Allowance {
        /// `period`, `window`, `model` or `member`; of a part, with a count of its own, the period's and the window's.
        var name: String
        var counter: Counter?
        /// How many a message takes.
        var weight = 1
        var used = 0
        var held = 0
        /// Without balances. Nil is unlimited, as in the limits below.
        var plain: Int?
        /// What is left in balances, and when the first of them ends.
        var extra = 0
        var extraEnds: Int?
        /// The limit after the reset.
        var renewed: Int?
        /// How long it lasts from the message that opens it. Nil has an end of its own, or none.
        var seconds: Int?
        var opened: Int?
        var resets: Int?

        var taken: Int { used + held }
        /// More than this may be taken already, and yet what balances have can be sent.
        var limit: Int? {
            get { plain.map { extra > 0 ? min(max($0, taken) + extra, .countMaximum) : $0 } }
            set { plain = newValue }
        }
        var left: Int { max(0, (limit ?? .max) - taken) }
        var isOverdrawn: Bool { taken > limit ?? .max }

        mutating func add(_ messages: Int, to count: WritableKeyPath<Allowance, Int>) {
            self[keyPath: count] = min(max(0, self[keyPath: count] + messages), .countMaximum)
        }
    }

    /// A user's usage at an instant, and what a request did.
    struct Reply {
        var plan: PlanRules
        var state: String
        /// Why nothing may be sent, whatever is left.
        var access: String?
        var period: String
        var now: Int
        /// When what is paid ends.
        var expires: Int?
        var renews: Bool?
        var previousPlan: String?
        /// The billing period's, then the window's, then those of the parts that the request names.
        var allowances: [Allowance] = []
        var parts = Parts()
        /// The model to offer instead, and what the allowances are with it.
        var fallback: (model: String, allowances: [Allowance])?
        var outcome = Outcome()
    }

    struct Outcome {
        /// `ok`, `allowed`, `held` or `blocked`.
        var status = "ok"
        var reason: String?
        var fallback: String?
        var retryAfter: Int?
        var requested = 0
        var released: Int?
        var crossed: Int?
        var isCrossing = false
        var isShadow = false
        var isRepeated = false
        /// What the messages took of balances, by their keys.
        var charges: [String: Int] = [:]
    }

    /// A billing period as it was last written; a past one is answered from it.
    struct Row {
        var usage: Reply
        /// What is used of the parts.
        var parts: [Counter: Int] = [:]
        /// The plan's allowance then. An operator's limit lasts until the plan has another one.
        var planLimit: Int?
        /// Also what was counted of balances.
        var granted = 0
        var wasLowered = false
        var usedAt: Int
        var used: Int { usage.allowances[0].used }
    }

    /// The last window, and the period in whose row it is stored.
    struct Window { var opened: Int, ends: Int, used: Int, period: String }

    /// A message with a key, with the numbers of its first answer and of its commit's. Without an end a hold is over.
    struct Key {
        /// As requested.
        var messages: Int
        var parts: Parts
        /// How many of the account's each took.
        var weight: Int
        var shares: [Counter: Share]
        var isHold: Bool
        var period: String
        var window: Int?
        var ends: Int?
        var status: String
        var isInRow = true
        var counted: Int
        var charges: [String: Int]
        var first: [Allowance]
        var committed: [Allowance] = []
    }
}

extension CountingModel.Reply {
    var window: CountingModel.Allowance? { allowances.first { $0.name == "window" } }
    var isPast: Bool { allowances[0].resets ?? .max <= now }
    var isOverdrawn: Bool { !plan.isEnforced && allowances.contains(where: \.isOverdrawn) }
    /// A renewal ends no access.
    var accessEnds: Int? { renews == true && ["active", "free"].contains(state) ? nil : expires }

    /// The highest of all allowances.
    var tier: Int { access == nil ? tiers.max()! : 3 }

    /// 0 is silent, 1 gentle, 2 prominent and 3 blocked.
    var tiers: [Int] {
        allowances.map { allowance in
            guard let limit = allowance.limit else { return 0 }
            if plan.isEnforced && allowance.taken >= limit { return 3 }
            return plan.percents.filter { allowance.taken * 100 >= limit * $0 }.count
        }
    }

    /// Why nothing at all may be sent. A lifetime plan without messages is no subscription.
    var refusal: String? {
        let isNothing = plan.cycle == "lifetime" && allowances[0].limit == 0 && plan.isEnforced && !isPast
        return access ?? (isNothing ? "no_subscription" : nil)
    }

    /// Messages must fit into all allowances. If some refuse them, one that is used up gives the reason, else the
    /// first, and the wait lasts until each of them is renewed, if that helps.
    func decision(_ messages: Int) -> CountingModel.Reply {
        var reply = self
        let refusing = allowances.filter { $0.left < messages * $0.weight }
        reply.outcome.status = refusal == nil && (refusing.isEmpty || !plan.isEnforced) ? "allowed" : "blocked"
        reply.outcome.isShadow = reply.outcome.status == "allowed" && !refusing.isEmpty
        guard reply.outcome.status == "blocked" else { return reply }
        (reply.outcome.reason, reply.outcome.requested) = (refusal, messages)
        guard refusal == nil, let first = refusing.first(where: { $0.left == 0 }) ?? refusing.first else {
            return reply
        }
        let isTrial = plan.cycle == "trial" && first.left == 0
        let prefix = first.name == "period" ? isTrial ? "trial_" : "" : first.name + "_"
        reply.outcome.reason = prefix + (first.left == 0 ? "limit_reached" : "exceeds_remaining")
        if let fallback, fallback.allowances.allSatisfy({ $0.left >= messages * $0.weight }) {
            reply.outcome.fallback = fallback.model
        }
        let ends = refusing.compactMap { messages * $0.weight <= $0.renewed ?? .max ? $0.resets : nil }
            .filter { $0 > now }
        if ends.count == refusing.count, let end = ends.max(), end < accessEnds ?? .max {
            reply.outcome.retryAfter = (end - now + .second - 1) / .second
        }
        return reply
    }
}

// MARK: Messages
extension CountingModel {
    /// CONSUME and RESERVE with a key.
    mutating func take(
        _ messages: Int,
        _ parts: Parts = Parts(),
        key: String,
        seconds: Int? = nil
    ) throws(Failure) -> Reply {
        if let known = keys[key] {
            updateOpenRow()
            if known.status == "released" { throw .released }
            let isSame = known.isHold == (seconds != nil) && known.messages == messages && known.parts == parts
            if !isSame { throw .conflict }
            if known.status == "held" && !isActive(known) { throw .expired }
            return replay(known, known.first, known.isHold ? "held" : "allowed")
        }
        let reply = take(messages, parts, seconds: seconds)
        guard reply.outcome.status != "blocked" else { return reply }
        keys[key] = Key(
            messages: messages,
            parts: parts,
            weight: reply.allowances[0].weight,
            shares: shares(reply),
            isHold: seconds != nil,
            period: reply.period,
            window: reply.window?.opened,
            ends: seconds.map { now + $0 * .second },
            status: seconds == nil ? "counted" : "held",
            counted: messages,
            charges: reply.outcome.charges,
            first: reply.allowances
        )
        return reply
    }

    /// Counts all messages in every allowance or none, or holds them for some seconds.
    mutating func take(_ messages: Int, _ parts: Parts = Parts(), seconds: Int? = nil) -> Reply {
        let before = usage(parts)
        var reply = before.decision(messages)
        guard reply.outcome.status == "allowed" else {
            updateOpenRow()
            return reply
        }
        for index in reply.allowances.indices {
            if reply.allowances[index].opened == nil, let seconds = reply.allowances[index].seconds {
                (reply.allowances[index].opened, reply.allowances[index].resets) = (now, now + seconds * .second)
            }
            let taken = messages * reply.allowances[index].weight
            reply.allowances[index].add(taken, to: seconds == nil ? \.used : \.held)
        }
        write(reply, isUse: true)
        pay(messages * reply.allowances[0].weight, isHeld: seconds != nil, in: &reply)
        if reply.tier > before.tier { reply.outcome.crossed = reply.tier }
        reply.outcome.isCrossing = zip(before.tiers, reply.tiers).contains { $0 < $1 }
        if seconds != nil { reply.outcome.status = "held" }
        return reply
    }

    /// COMMIT counts a hold or a part of it in its period, also after the end of period or access.
    mutating func commit(_ messages: Int?, key name: String) throws(Failure) -> Reply {
        updateOpenRow()
        guard var key = keys[name] else { throw .unknownKey }
        if !key.isHold || key.status == "counted" && messages ?? key.messages != key.counted { throw .conflict }
        if key.status == "released" { throw .released }
        if key.status == "counted" { return replay(key, key.committed, "allowed") }
        guard isActive(key), rows[key.period] != nil else { throw .expired }
        (key.status, key.counted, key.isInRow) = ("counted", messages ?? key.messages, true)
        if key.counted > key.messages { throw .tooMany }
        for counter in key.shares.keys { key.shares[counter]?.isInRow = true }
        giveBack((key.messages - key.counted) * key.weight, of: &key)
        keys[name] = key
        changeBalances(key.charges, in: key.period, by: 1)
        changeWindow(key.window, by: key.counted * key.weight)
        changeRow(key.period, by: key.counted * key.weight)
        changeParts(key, by: key.counted)
        let open = usage(key.parts)
        if open.period == key.period { write(open, isUse: true) }
        var reply = usage(key.parts, in: key.period) ?? open
        let window = open.allowances.filter { $0.name == "window" }
        reply.allowances = [reply.allowances[0]] + window + reply.allowances.filter { $0.counter != nil }
        keys[name]?.committed = reply.allowances
        (reply.access, reply.outcome.status) = (nil, "allowed")
        return reply
    }

    /// RELEASE gives back once what a key holds or has counted.
    mutating func release(key name: String) throws(Failure) -> Reply {
        updateOpenRow()
        guard let key = keys[name] else { throw .unknownKey }
        keys[name]?.status = "released"
        var released = isActive(key) ? key.messages : 0
        if key.status == "counted", key.isInRow, rows[key.period] != nil {
            released = key.counted
            changeBalances(key.charges, in: key.period, by: -1)
            changeRow(key.period, by: -released * key.weight)
            changeParts(key, by: -released)
        }
        if released > 0 { changeWindow(key.window, by: key.status == "held" ? 0 : -released * key.weight) }
        var reply = usage(key.parts)
        if released > 0, key.period == reply.period { write(reply, isUse: true) }
        (reply.outcome.released, reply.outcome.isRepeated) = (released, key.status == "released")
        return reply
    }

    /// The first numbers again. A window has an end while it is open.
    private func replay(_ key: Key, _ numbers: [Allowance], _ status: String) -> Reply {
        let open = usage(key.parts)
        var reply = usage(key.parts, in: key.period) ?? open
        let period = reply.allowances[0]
        reply.allowances = numbers.map { numbers in
            let isOpen = { (window: Allowance) in window.isSame(as: numbers) && window.opened == key.window(of: numbers)
            }
            let present = numbers.seconds == nil ? period : open.allowances.first(where: isOpen)
            var numbers = numbers
            (numbers.opened, numbers.resets) = (present?.opened, present?.resets)
            return numbers
        }
        (reply.period, reply.access, reply.outcome.status) = (key.period, nil, status)
        let isShadow = reply.isOverdrawn && (status == "held" || !key.isHold)
        (reply.outcome.isShadow, reply.outcome.isRepeated) = (isShadow, true)
        return reply
    }
}
