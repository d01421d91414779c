/// The answer to one request: the user's snapshot after it, and the outcome of the request.
public struct Answer: Sendable, Equatable {
    public enum Status: Sendable, Equatable {
        /// The messages are counted and durable. For a `CHECK`, a `CONSUME` would be counted.
        case allowed
        /// Nothing was counted.
        case blocked(DenialReason)
        /// The messages are reserved. They count as used until commit, release or expiry.
        case held
        /// The answer to `USAGE`, or to an operator's change.
        case ok
    }

    public var user: UserID
    public var snapshot: UsageSnapshot
    // The order of the properties avoids padding between the small ones: an answer is copied several times on its way.
    public var status: Status
    /// The tier into which this message moved the user. Only one answer has it.
    public var crossed: Tier?
    /// Whether this message moved one of the user's allowances into a higher tier, which notifications tell. `crossed`
    /// is that of the fullest alone.
    public var isCrossing: Bool
    /// The messages were allowed only because the plan is unenforced.
    public var isShadow: Bool
    /// The key was used before. The answer is the first outcome, and nothing was counted now.
    public var isRepeated: Bool
    /// Whether to include the fields that only `USAGE` has (`AnswerField.isOnlyOfUsage`).
    public var isDetailed: Bool
    public var retryAfterSeconds: Int64?
    private var storedReleased: Int32?
    private var storedRequested: Int32

    public init(
        user: UserID,
        status: Status,
        snapshot: UsageSnapshot,
        crossed: Tier? = nil,
        isCrossing: Bool = false,
        retryAfterSeconds: Int64? = nil,
        released: Int? = nil,
        requested: Int = 0,
        isShadow: Bool = false,
        isRepeated: Bool = false,
        isDetailed: Bool = false
    ) {
        self.user = user
        self.status = status
        self.snapshot = snapshot
        self.crossed = crossed
        self.isCrossing = isCrossing
        self.retryAfterSeconds = retryAfterSeconds
        storedReleased = released.map(Int32.init(clamping:))
        storedRequested = Int32(clamping: requested)
        self.isShadow = isShadow
        self.isRepeated = isRepeated
        self.isDetailed = isDetailed
    }

    /// The number of messages that a `RELEASE` gave back.
    public var released: Int? {
        get { storedReleased.map(Int.init) }
        set { storedReleased = newValue.map(Int32.init(clamping:)) }
    }

    /// The number of messages that were refused; 0 in other answers.
    public var requested: Int { Int(storedRequested) }

    /// Why the user may not send. A refusal has a reason, and so has an `ok` if the user has no access.
    public var reason: DenialReason? {
        switch status {
        case .blocked(let refusal): refusal
        case .ok: snapshot.accessDenialReason
        case .allowed, .held: nil
        }
    }

    /// When the store renews the subscription; nil unless usage was requested.
    public var renews: Instant? { isDetailed ? snapshot.renewsAt : nil }

    /// When the grace period ends; nil unless usage was requested.
    public var graceUntil: Instant? { isDetailed ? snapshot.graceUntilShown : nil }

    /// The plan to which the store renews the subscription; nil if that is the present one.
    public var nextPlan: String? { renews == nil ? nil : snapshot.details?.nextPlan }

    /// What the store reports about the subscription; nil unless usage was requested.
    public var details: SubscriptionDetails? { isDetailed ? snapshot.details : nil }
}

extension UsageSnapshot {
    /// Counts `messages` if all of them fit. The requests of one user are answered by calling this in their order.
    public mutating func consume(_ messages: Int, of user: UserID) -> Answer {
        let refusing = refusing(messages)
        if let refusal = refusal(refusing) {
            return blocked(refusal, messages: messages, user: user)
        }
        let before = tiers
        add(used: messages, opens: true)
        let after = tiers
        return Answer(
            user: user,
            status: .allowed,
            snapshot: self,
            crossed: after.user > before.user ? after.user : nil,
            isCrossing: after.user > before.user || after.sum > before.sum,
            isShadow: refusing != nil
        )
    }

    /// Holds `messages` if all of them fit.
    public mutating func reserve(_ messages: Int, of user: UserID) -> Answer {
        let refusing = refusing(messages)
        if let refusal = refusal(refusing) {
            return blocked(refusal, messages: messages, user: user)
        }
        let before = tiers
        add(held: messages, opens: true)
        let after = tiers
        return Answer(
            user: user,
            status: .held,
            snapshot: self,
            crossed: after.user > before.user ? after.user : nil,
            isCrossing: after.user > before.user || after.sum > before.sum,
            isShadow: refusing != nil
        )
    }

    /// Counts some of the messages that a key held in the open period and window, and gives back the rest. It moves no
    /// user into a higher tier, because held messages count as used.
    public mutating func commit(_ messages: Int, ofHeld heldByKey: Int, of user: UserID) -> Answer {
        add(used: messages, held: -heldByKey)
        return Answer(user: user, status: .allowed, snapshot: self)
    }

    /// Gives back messages that were held in the open period and window.
    public mutating func release(_ messages: Int, of user: UserID) -> Answer {
        add(held: -messages)
        return Answer(user: user, status: .ok, snapshot: self, released: messages)
    }

    /// The answer that `consume` would give, without counting.
    public func check(_ messages: Int, of user: UserID) -> Answer {
        let refusing = refusing(messages)
        if let refusal = refusal(refusing) {
            return blocked(refusal, messages: messages, user: user)
        }
        return Answer(user: user, status: .allowed, snapshot: self, isShadow: refusing != nil)
    }

    /// The answer to `USAGE`, with the fields that only it has.
    public func usage(of user: UserID) -> Answer {
        Answer(user: user, status: .ok, snapshot: self, isDetailed: true)
    }

    /// The answer to a refused request.
    public func blocked(_ refusal: DenialReason, messages: Int, user: UserID) -> Answer {
        Answer(
            user: user,
            status: .blocked(refusal),
            snapshot: self,
            retryAfterSeconds: retryAfterSeconds(refusal, messages: messages),
            requested: messages
        )
    }
}

/// A user's usage in one billing period.
public struct PeriodUsage: Sendable, Equatable {
    public var user: UserID
    public var period: BillingPeriod
    public var used: Int
    /// The user's limit in the period; nil means no limit.
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
