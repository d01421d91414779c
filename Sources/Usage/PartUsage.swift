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

    /// Calls `body` with the limits for the period and for the window. Neither is there if the part is only counted.
    ///
    /// - Parameters:
    ///   - weight: what a message takes.
    ///   - resetsAt: the reset of the user's period.
    @inline(__always)
    fileprivate func forEachAllowance(weight: Int, resetsAt: Instant?, _ body: (Allowance) -> Void) {
        guard let limit else { return }
        let name: Allowance.Name = part.kind == .model ? .model : .member
        if let allowance = limit.allowance {
            body(
                Allowance(
                    name,
                    used: counter.used,
                    held: counter.held,
                    limit: allowance,
                    renewedLimit: allowance,
                    resetsAt: resetsAt,
                    weight: weight
                )
            )
        }
        if let window = limit.window {
            body(
                Allowance(
                    name,
                    used: counter.windowUsed,
                    held: counter.windowHeld,
                    limit: window.messages,
                    renewedLimit: window.messages,
                    resetsAt: counter.windowEndsAt,
                    weight: weight,
                    windowSeconds: window.seconds
                )
            )
        }
    }

    /// Adds to the counts of the period and of the window. They stop at `UsageSnapshot.countMaximum`.
    fileprivate mutating func add(used: Int, held: Int) {
        func sum(_ count: Int, _ messages: Int) -> Int { min(count + messages, UsageSnapshot.countMaximum) }
        (counter.used, counter.held) = (sum(counter.used, used), sum(counter.held, held))
        guard limit?.window != nil else { return }
        (counter.windowUsed, counter.windowHeld) = (sum(counter.windowUsed, used), sum(counter.windowHeld, held))
    }

    fileprivate var isOpen: Bool { limit?.window == nil || counter.windowOpenedAt != nil }

    /// Opens the window if the limit has one and none is open.
    fileprivate mutating func open(at now: Instant) {
        guard !isOpen, let seconds = limit?.window?.seconds else { return }
        counter.windowOpenedAt = now
        counter.windowEndsAt = now.advanced(bySeconds: Int64(seconds))
        (counter.windowUsed, counter.windowHeld) = (0, 0)
    }
}

extension UsageSnapshot {
    /// How many messages of the user's allowances a message of this request takes.
    public var weight: Int {
        parts.isEmpty ? 1 : parts.lazy.compactMap { $0.part.kind == .model ? $0.limit?.weight : nil }.first ?? 1
    }

    /// Appends the allowances of the parts, without an array of their own: each message asks for them several times.
    func appendPartAllowances(to allowances: inout Allowances) {
        let weight = weight
        for part in parts {
            part.forEachAllowance(weight: part.part.kind == .model ? 1 : weight, resetsAt: resetsAt) {
                allowances.append($0)
            }
        }
    }

    private func allowances(of part: PartUsage) -> [Allowance] {
        var allowances: [Allowance] = []
        part.forEachAllowance(weight: part.part.kind == .model ? 1 : weight, resetsAt: resetsAt) {
            allowances.append($0)
        }
        return allowances
    }

    /// Whether nothing is left of a limit of the part.
    public func isUsedUp(_ part: PartUsage) -> Bool {
        plan.isEnforced && allowances(of: part).contains(where: \.isUsedUp)
    }

    /// Adds messages to the counts of each part.
    mutating func addToParts(used messages: Int, held heldMessages: Int) {
        guard !parts.isEmpty else { return }
        let weight = weight
        parts = parts.map { part in
            var part = part
            let each = part.part.kind == .model ? 1 : weight
            if part.limit != nil { part.add(used: messages * each, held: heldMessages * each) }
            return part
        }
    }

    mutating func openParts() {
        guard !parts.allSatisfy(\.isOpen) else { return }
        parts = parts.map { part in
            var part = part
            part.open(at: observedAt)
            return part
        }
    }

    /// The part as answers show it, after the period without numbers. Of a limit for the period and one for the window,
    /// the fuller one is shown.
    func shown(_ part: PartUsage) -> ShownAllowance {
        let name: Allowance.Name = part.part.kind == .model ? .model : .member
        guard !isPast, part.limit != nil else { return ShownAllowance(name: name, part: part.part) }
        let allowances = allowances(of: part)
        guard let first = allowances.first else {
            return ShownAllowance(name: name, part: part.part, used: part.counter.used)
        }
        var shown = self.shown(allowances.dropFirst().reduce(first) { $1.isFuller(than: $0) ? $1 : $0 })
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
