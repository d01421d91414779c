import Usage

/// The limit of a part of a user's messages, and of members the member: a row of `headroom.usage_parts` without the
/// user and the period.
enum PartID: Hashable {
    /// The name is that of the limit, which several models may share.
    case model(String)
    case member(UserID)

    /// Makes it of a row's columns; nil for a member without an id, which was forgotten.
    init?(kind: PlanLimit.Kind, name: String) {
        switch kind {
        case .model: self = .model(name)
        case .member:
            guard let member = UserID(name) else { return nil }
            self = .member(member)
        }
    }

    init(_ part: MessagePart, _ limit: PlanLimit) {
        switch part {
        case .model: self = .model(limit.name)
        case .member(let member): self = .member(member)
        }
    }

    var kind: PlanLimit.Kind {
        switch self {
        case .model: .model
        case .member: .member
        }
    }

    var name: String {
        switch self {
        case .model(let name): name
        case .member(let member): "\(member)"
        }
    }

    /// The limits to which a request is charged, and those of the model to offer if it is refused.
    static func all(of parts: MessageParts, _ plan: Plan) -> [PartID] {
        let charged = parts.all.compactMap { part in plan.limit(of: part).map { (PartID(part, $0), $0) } }
        let offered = charged.compactMap { _, limit in limit.fallback.map { MessagePart.model($0) } }
        return charged.map(\.0) + offered.compactMap { part in plan.limit(of: part).map { PartID(part, $0) } }
    }
}

/// The counters of the parts of one user's messages, while the user's requests are answered one after the other.
struct UserParts {
    /// The counter of a limit without a row is not among them.
    private(set) var counters: PartTable<PartCounter>
    /// The counters after messages that were allowed when they were counted, even if an operator has changed the plan
    /// since.
    var allowed: [PartID: PartCounter] = [:]
    /// Whether the counters of models to offer were read, too. They are not if nothing is refused.
    private let knowsFallbacks: Bool

    init(knowsFallbacks: Bool) {
        counters = PartTable()
        self.knowsFallbacks = knowsFallbacks
    }

    /// - Parameter stored: the rows of the user, of which those of `period` count.
    init(_ stored: [PartKey: StoredPart], in period: BillingPeriod) {
        self.init(knowsFallbacks: true)
        for (key, part) in stored where key.period == period { set(part.counter, for: key.id) }
    }

    mutating func set(_ counter: PartCounter, for id: PartID) { counters.set(counter, for: id) }

    fileprivate func usages(of parts: MessageParts, _ plan: Plan, at now: Instant) -> [PartUsage] {
        parts.all.map { part in
            var limit = plan.limit(of: part)
            if !allowed.isEmpty, let known = limit, let counted = allowed[PartID(part, known)] {
                limit = known.raised(toFit: counted)
            }
            return PartUsage(
                part,
                limit: limit,
                counter: counter(of: part, limit, at: now),
                fallback: knowsFallbacks ? limit?.fallback.map { fallback($0, plan, at: now) } : nil
            )
        }
    }

    private func fallback(_ model: ModelName, _ plan: Plan, at now: Instant) -> PartUsage.Fallback {
        let limit = plan.limit(of: .model(model))
        return PartUsage.Fallback(model: model, limit: limit, counter: counter(of: .model(model), limit, at: now))
    }

    private func counter(of part: MessagePart, _ limit: PlanLimit?, at now: Instant) -> PartCounter {
        guard let limit, let counter = counters[PartID(part, limit)] else { return PartCounter() }
        return counter.limited(to: limit.window, at: now)
    }

    fileprivate mutating func keep(_ usages: [PartUsage]) {
        for usage in usages {
            guard let limit = usage.limit else { continue }
            counters.set(usage.counter, for: PartID(usage.part, limit))
        }
    }
}

extension UsageSnapshot {
    /// Decides a request: gives the snapshot the counters of the parts that it names meanwhile, and keeps what becomes
    /// of them. Without counters, nothing was counted in the parts yet.
    @inline(__always)
    mutating func charging<Decision>(
        _ parts: MessageParts?,
        _ counters: inout UserParts?,
        _ decide: (inout UsageSnapshot) -> Decision
    ) -> Decision {
        guard let parts else { return decide(&self) }
        // It is taken out, so that it is changed in place.
        var known = counters.take() ?? UserParts(knowsFallbacks: false)
        let before = entitlement
        entitlement = before.with(parts: known.usages(of: parts, plan, at: observedAt))
        let decision = decide(&self)
        known.keep(self.parts)
        counters = known
        entitlement = entitlement.window == before.window ? before : entitlement.with(parts: [])
        return decision
    }
}

extension PlanLimit {
    /// The limit, raised so that what is counted fits.
    fileprivate func raised(toFit counter: PartCounter) -> PlanLimit {
        let (least, leastInWindow) = (counter.used + counter.held, counter.windowUsed + counter.windowHeld)
        guard allowance ?? .max < least || window?.messages ?? .max < leastInWindow else { return self }
        return PlanLimit(
            kind,
            name,
            label: label,
            allowance: allowance.map { max($0, least) },
            window: window.map { Plan.Window(messages: max($0.messages, leastInWindow), seconds: $0.seconds) },
            weight: weight,
            fallback: fallback
        )
    }
}

extension Sequence<BatchedRequest> {
    /// The limits to which the requests are charged, and those of models to offer, each once.
    func partIDs(_ plan: Plan) -> Set<PartID> {
        reduce(into: []) { ids, request in
            if let parts = request.parts { ids.formUnion(PartID.all(of: parts, plan)) }
        }
    }
}

extension PartCounter {
    /// The counter as a plan with this window has it: a shorter one ends earlier than the row says, because an edit of
    /// the plan writes no rows.
    func limited(to window: Plan.Window?, at now: Instant) -> PartCounter {
        guard let window, let openedAt = windowOpenedAt, let endsAt = windowEndsAt else { return self }
        var counter = self
        counter.windowEndsAt = min(endsAt, openedAt.advanced(bySeconds: Int64(window.seconds)))
        if counter.windowEndsAt.map({ $0 <= now }) ?? true { counter.closeWindow() }
        return counter
    }

    mutating func closeWindow() {
        (windowOpenedAt, windowEndsAt, windowUsed, windowHeld) = (nil, nil, 0, 0)
    }
}
