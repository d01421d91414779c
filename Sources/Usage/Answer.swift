/// What one request is told: a user's snapshot after it, and what the request did.
public struct Answer: Sendable, Equatable {
    public enum Status: Sendable, Equatable {
        /// Counted and durable; for a `CHECK`, what a `CONSUME` would have done.
        case allowed
        /// Nothing counted.
        case blocked(DenialReason)
        /// Reserved: counts as used until it is committed, released, or its time has passed.
        case held
        /// A reading, or an operator's change.
        case ok
    }

    public var user: UserID
    public var status: Status
    public var snapshot: UsageSnapshot
    /// The tier into which this very message moved the user: said once, on the one answer that moved it.
    public var crossed: Tier?
    public var retryAfterSeconds: Int64?
    /// Messages that a `RELEASE` gave back.
    public var released: Int?
    /// The key was used before: this is the first outcome again, and nothing was counted now.
    public var isReplay: Bool
    /// `USAGE` adds `renews`, `grace_until`, `next_plan`, `label` and `accessible`.
    public var isDetailed: Bool

    public init(
        user: UserID,
        status: Status,
        snapshot: UsageSnapshot,
        crossed: Tier? = nil,
        retryAfterSeconds: Int64? = nil,
        released: Int? = nil,
        isReplay: Bool = false,
        isDetailed: Bool = false
    ) {
        self.user = user
        self.status = status
        self.snapshot = snapshot
        self.crossed = crossed
        self.retryAfterSeconds = retryAfterSeconds
        self.released = released
        self.isReplay = isReplay
        self.isDetailed = isDetailed
    }

    /// Why nothing may be sent: of a refusal, and of a reading or an operator's change where there is no access.
    public var reason: DenialReason? {
        switch status {
        case .blocked(let refusal): refusal
        case .ok: snapshot.missingAccess
        case .allowed, .held: nil
        }
    }

    /// When the store renews the subscription, where usage was asked for.
    public var renews: Instant? { isDetailed ? snapshot.renewsAt : nil }

    /// When the grace period ends, where usage was asked for.
    public var graceUntil: Instant? { isDetailed ? snapshot.graceUntilShown : nil }

    /// The plan to which it renews, where that is another.
    public var nextPlan: String? { renews == nil ? nil : snapshot.nextPlan }
}

extension UsageSnapshot {
    /// Counts `messages` if they fit, and says so. Requests of one user are answered by calling this in their order.
    public mutating func consume(_ messages: Int, of user: UserID) -> Answer {
        if let refusal = refusal(of: messages) {
            return blocked(refusal, messages: messages, user: user)
        }
        let before = tier
        count(messages)
        let after = tier
        return Answer(user: user, status: .allowed, snapshot: self, crossed: after > before ? after : nil)
    }

    /// What `consume` would say now, with `used` as it is.
    public func check(_ messages: Int, of user: UserID) -> Answer {
        if let refusal = refusal(of: messages) {
            return blocked(refusal, messages: messages, user: user)
        }
        return Answer(user: user, status: .allowed, snapshot: self)
    }

    /// The snapshot itself, with its label and its sentence for a screen reader.
    public func usage(of user: UserID) -> Answer {
        Answer(user: user, status: .ok, snapshot: self, isDetailed: true)
    }

    /// What a request is told that was refused at this snapshot.
    public func blocked(_ refusal: DenialReason, messages: Int, user: UserID) -> Answer {
        Answer(
            user: user,
            status: .blocked(refusal),
            snapshot: self,
            retryAfterSeconds: retryAfterSeconds(refusal, messages: messages)
        )
    }
}

/// One period of a user's history.
public struct PeriodUsage: Sendable, Equatable {
    public var user: UserID
    public var period: BillingPeriod
    public var used: Int
    /// Nil is unlimited.
    public var limit: Int?
    public var tier: Tier

    public init(user: UserID, period: BillingPeriod, used: Int, limit: Int?, tier: Tier) {
        self.user = user
        self.period = period
        self.used = used
        self.limit = limit
        self.tier = tier
    }
}
