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

    /// Whether a larger share of this one is taken. Exact, whatever a division would round to.
    public func isTighter(than other: Allowance) -> Bool {
        guard let share else { return false }
        guard let otherShare = other.share else { return true }
        return share.taken * otherShare.limit > otherShare.taken * share.limit
    }

    /// What is taken of what is allowed; nil without a limit. An allowance of nothing is as tight as one that is used
    /// up.
    private var share: (taken: Int, limit: Int)? {
        limit.map { $0 == 0 ? (taken: 1, limit: 1) : (taken: taken, limit: $0) }
    }
}
