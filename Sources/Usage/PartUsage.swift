/// The messages that are counted under a limit for a part of a user's messages: a row of `headroom.usage_parts`.
public struct PartCounter: Sendable, Equatable {
    /// Messages counted in the period.
    public var used = 0
    /// Messages reserved in the period and not committed or released yet; they count as used.
    public var held = 0
    /// Messages counted in the open window.
    public var windowUsed = 0
    /// Messages reserved in the open window and not committed or released yet.
    public var windowHeld = 0
    /// When the open window began; nil if none is open.
    public var windowOpenedAt: Instant?
    public var windowEndsAt: Instant?

    public init() {}
}

/// The usage of a part of a user's messages: of those with a model, or of those of a member.
public struct PartUsage: Sendable, Equatable {
    /// What is counted instead if the product goes on with the fallback of a model. It is a class, because it is rare
    /// and large.
    public final class Fallback: Sendable, Equatable {
        public let model: ModelName
        public let limit: PlanLimit?
        public let counter: PartCounter

        public init(model: ModelName, limit: PlanLimit?, counter: PartCounter) {
            self.model = model
            self.limit = limit
            self.counter = counter
        }

        /// The name that users read.
        public var label: String { limit?.label ?? model.text }

        public static func == (lhs: Fallback, rhs: Fallback) -> Bool {
            lhs.model == rhs.model && lhs.limit == rhs.limit && lhs.counter == rhs.counter
        }
    }

    public let part: MessagePart
    /// Nil if the plan has no limit for the part. Nothing is counted then.
    public let limit: PlanLimit?
    public var counter: PartCounter
    /// It is nil also if it was not looked up: only a refusal needs it.
    public var fallback: Fallback?

    public init(_ part: MessagePart, limit: PlanLimit?, counter: PartCounter = PartCounter(), fallback: Fallback? = nil)
    {
        self.part = part
        self.limit = limit
        self.counter = counter
        self.fallback = fallback
    }

    /// The name that users read.
    public var label: String { limit?.label ?? part.name }

    /// The limits for the period and for the window. Neither is there if the part is only counted.
    ///
    /// - Parameters:
    ///   - weight: what a message of the request takes of the user's allowances.
    ///   - resetsAt: the reset of the user's period.
    fileprivate func allowances(weight: Int, resetsAt: Instant?) -> (period: Allowance?, window: Allowance?) {
        guard let limit else { return (nil, nil) }
        let (name, weight): (Allowance.Name, Int) = part.kind == .model ? (.model, 1) : (.member, weight)
        let period = limit.allowance.map {
            Allowance(
                name,
                used: counter.used,
                held: counter.held,
                limit: $0,
                renewedLimit: $0,
                resetsAt: resetsAt,
                weight: weight
            )
        }
        let window = limit.window.map {
            Allowance(
                name,
                used: counter.windowUsed,
                held: counter.windowHeld,
                limit: $0.messages,
                renewedLimit: $0.messages,
                resetsAt: counter.windowEndsAt,
                weight: weight,
                windowSeconds: $0.seconds
            )
        }
        return (period, window)
    }

    /// Adds to the counts of the period and of the window. They stop at `UsageSnapshot.countMaximum`.
    fileprivate mutating func add(used: Int, held: Int) {
        func sum(_ count: Int, _ messages: Int) -> Int { min(count + messages, UsageSnapshot.countMaximum) }
        (counter.used, counter.held) = (sum(counter.used, used), sum(counter.held, held))
        guard limit?.window != nil else { return }
        (counter.windowUsed, counter.windowHeld) = (sum(counter.windowUsed, used), sum(counter.windowHeld, held))
    }

    /// Opens the window if the limit has one and none is open.
    fileprivate mutating func open(at now: Instant) {
        guard counter.windowOpenedAt == nil, let seconds = limit?.window?.seconds else { return }
        counter.windowOpenedAt = now
        counter.windowEndsAt = now.advanced(bySeconds: Int64(seconds))
        (counter.windowUsed, counter.windowHeld) = (0, 0)
    }
}

extension [PartUsage] {
    /// How many messages of the user's allowances a message of the request takes.
    var weight: Int {
        for index in indices where self[index].part.kind == .model { return self[index].limit?.weight ?? 1 }
        return 1
    }
}

extension UsageSnapshot {
    /// How many messages of the user's allowances a message of this request takes.
    public var weight: Int { entitlement.weight }

    /// Appends the allowances of the parts, without an array of their own: each message asks for them several times.
    func appendPartAllowances(to allowances: inout Allowances) {
        let parts = entitlement.parts
        for index in parts.indices {
            let (period, window) = parts[index].allowances(weight: weight, resetsAt: resetsAt)
            if let period { allowances.append(period) }
            if let window { allowances.append(window) }
        }
    }

    /// Whether nothing is left of a limit of the part.
    public func isUsedUp(_ part: PartUsage) -> Bool {
        let (period, window) = part.allowances(weight: weight, resetsAt: resetsAt)
        return plan.isEnforced && (period?.isUsedUp ?? false || window?.isUsedUp ?? false)
    }

    /// Adds messages to the counts of each part, and first opens the windows that begin with them.
    mutating func addToParts(used messages: Int, held heldMessages: Int, _ opens: Bool) {
        guard !entitlement.parts.isEmpty else { return }
        var parts = entitlement.parts
        for index in parts.indices where parts[index].limit != nil {
            let each = parts[index].part.kind == .model ? 1 : weight
            if opens { parts[index].open(at: observedAt) }
            parts[index].add(used: messages * each, held: heldMessages * each)
        }
        entitlement = entitlement.with(parts: parts)
    }

    /// The part as answers show it, after the period without numbers. Of a limit for the period and one for the window,
    /// the fuller one is shown.
    func shown(_ part: PartUsage) -> ShownAllowance {
        let name: Allowance.Name = part.part.kind == .model ? .model : .member
        guard !isPast, part.limit != nil else { return ShownAllowance(name: name, part: part.part) }
        let (period, window) = part.allowances(weight: weight, resetsAt: resetsAt)
        var fuller = period ?? window
        if let period, let window, window.isFuller(than: period) { fuller = window }
        guard let fuller else { return ShownAllowance(name: name, part: part.part, used: part.counter.used) }
        var shown = self.shown(fuller)
        shown?.part = part.part
        return shown ?? ShownAllowance(name: name, part: part.part)
    }

    /// The model to offer instead of the one with which `messages` were refused; nil if it has none, or if they would
    /// be refused with it, too.
    func fallback(of messages: Int) -> PartUsage.Fallback? {
        guard let index = parts.firstIndex(where: { $0.fallback != nil }), let fallback = parts[index].fallback else {
            return nil
        }
        var other = self
        other.parts[index] = PartUsage(.model(fallback.model), limit: fallback.limit, counter: fallback.counter)
        return other.refusal(of: messages) == nil ? fallback : nil
    }
}

extension Answer {
    /// The model to offer instead of the one that was refused; nil in other answers, and if it has no room either.
    public var fallback: PartUsage.Fallback? {
        guard case .blocked(let reason) = status, !snapshot.parts.isEmpty, reason.isAboutAllowance else { return nil }
        return snapshot.fallback(of: requested)
    }
}
