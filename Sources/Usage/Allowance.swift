/// Messages that a user may send until the allowance resets, and how many of them are taken.
public struct Allowance: Sendable, Equatable {
    /// Messages counted.
    public var used: Int
    /// Messages reserved and not committed or released yet; they count as used.
    public var held: Int
    /// The most messages that may be taken; nil means no limit.
    public var limit: Int?
    /// When the messages come back. Nil means never; for a window, nil means that none is open.
    public var resetsAt: Instant?

    @inlinable
    public init(used: Int, held: Int = 0, limit: Int?, resetsAt: Instant? = nil) {
        self.used = used
        self.held = held
        self.limit = limit
        self.resetsAt = resetsAt
    }

    /// Messages counted or held.
    @inlinable public var taken: Int { used + held }

    /// Messages that may still be sent; nil is unlimited. It is 0 if a lowered limit is below the count.
    @inlinable public var remaining: Int? { limit.map { max(0, $0 - taken) } }

    /// Whether not even one more message fits.
    @inlinable public var isUsedUp: Bool { !fits(1) }

    /// Whether all of `messages` fit.
    @inlinable
    public func fits(_ messages: Int) -> Bool {
        guard let limit else { return true }
        return taken + messages <= limit
    }
}

/// All allowances of a user: a message must fit into each of them, and counts in each.
public struct Allowances: Sendable, Equatable {
    public enum Name: Sendable, Equatable {
        case period, window
    }

    /// The allowance of the billing period.
    public var period: Allowance
    /// The allowance of the window; nil if the plan has none.
    public var window: Allowance?

    @inlinable
    public init(period: Allowance, window: Allowance? = nil) {
        self.period = period
        self.window = window
    }

    public subscript(name: Name) -> Allowance { name == .window ? window ?? period : period }

    /// The allowance of which the larger share is taken. It decides tier, display and banner. It is the period if both
    /// are equally full or both are used up.
    @inlinable public var tightest: Name {
        guard let window, let windowLimit = window.limit, !period.isUsedUp else { return .period }
        guard let periodLimit = period.limit, !window.isUsedUp else { return .window }
        // Both shares, taken / limit, are compared by cross products, because a division would round.
        let (ofWindow, ofPeriod) = (
            window.taken.multipliedFullWidth(by: periodLimit), period.taken.multipliedFullWidth(by: windowLimit)
        )
        return (ofWindow.high, ofWindow.low) > (ofPeriod.high, ofPeriod.low) ? .window : .period
    }

    /// The allowance because of which `messages` are refused; nil if they fit into both. If both refuse them, it is the
    /// only one that is used up, and otherwise the period.
    @inlinable
    public func refusing(_ messages: Int) -> Name? {
        let fitsPeriod = period.fits(messages)
        guard let window, !window.fits(messages) else { return fitsPeriod ? nil : .period }
        return fitsPeriod || window.isUsedUp && !period.isUsedUp ? .window : .period
    }
}

/// A user's window, if the plan limits messages in a shorter time beside the period.
public struct UsageWindow: Sendable, Equatable {
    /// Messages allowed in the window.
    public var limit: Int
    /// When the open window began, which is with its first message. Nil if none is open; the next message then opens
    /// one.
    public var openedAt: Instant?
    /// When the open window ends.
    public var endsAt: Instant?

    public init(limit: Int, openedAt: Instant? = nil, endsAt: Instant? = nil) {
        self.limit = limit
        self.openedAt = openedAt
        self.endsAt = endsAt
    }
}
