/// Messages that a user may send until the allowance resets, and how many of them are taken.
public struct Allowance: Sendable, Equatable {
    /// Messages counted.
    public var used: Int
    /// Messages reserved and not committed or released yet; they count as used.
    public var held: Int
    /// Nil is unlimited.
    public var limit: Int?
    /// When it is renewed. Nil is never.
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

    /// Messages that may still be sent; nil is unlimited. 0 if a lowered limit is below the count.
    @inlinable public var remaining: Int? { limit.map { max(0, $0 - taken) } }

    /// Whether not one more message fits.
    @inlinable public var isUsedUp: Bool { !fits(1) }

    /// Whether all of `messages` fit.
    @inlinable
    public func fits(_ messages: Int) -> Bool {
        guard let limit else { return true }
        return taken + messages <= limit
    }
}

/// All allowances of a user: a message must fit into each of them, and counts in each. There is one, that of the
/// billing period. Another one is added here.
public struct Allowances: Sendable, Equatable {
    public var period: Allowance

    @inlinable
    public init(period: Allowance) {
        self.period = period
    }

    /// The one of which most is taken. It decides tier, display and banner.
    @inlinable public var tightest: Allowance { period }

    /// The one because of which `messages` are refused; nil if they fit into all.
    @inlinable
    public func refusing(_ messages: Int) -> Allowance? { period.fits(messages) ? nil : period }
}
