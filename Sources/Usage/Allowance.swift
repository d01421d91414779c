/// Messages that a user may send until the allowance resets, and how many of them are taken.
public struct Allowance: Sendable, Equatable {
    public enum Name: Sendable, CaseIterable {
        /// The messages of the billing period.
        case period
        /// The messages of a shorter time, which begins with a message.
        case window
        /// The messages with a model, in the period or in a shorter time.
        case model
        /// The messages of a member, in the period or in a shorter time.
        case member
    }

    public var name: Name
    /// Messages counted.
    public var used: Int
    /// Messages reserved and not committed or released yet; they count towards the limit, as those that are used.
    public var held: Int
    /// The most messages that may be taken; nil means no limit.
    public var limit: Int?
    /// The limit after the reset: from then on, no more messages than this fit at once. Nil means no limit.
    public var renewedLimit: Int?
    /// When the messages come back. Nil means never; for a window, nil means that none is open.
    public var resetsAt: Instant?
    /// How many messages of it a message of the request takes.
    public var weight: Int
    /// How long it lasts from its first message on; nil for one that has the plan's period.
    public var windowSeconds: Int?

    @inlinable
    public init(
        _ name: Name = .period,
        used: Int,
        held: Int = 0,
        limit: Int?,
        renewedLimit: Int? = nil,
        resetsAt: Instant? = nil,
        weight: Int = 1,
        windowSeconds: Int? = nil
    ) {
        self.name = name
        self.used = used
        self.held = held
        self.limit = limit
        self.renewedLimit = renewedLimit
        self.resetsAt = resetsAt
        self.weight = weight
        self.windowSeconds = windowSeconds
    }

    /// Messages counted or held.
    @inlinable public var taken: Int { used + held }

    /// Messages that may still be sent; nil is unlimited. It is 0 if a lowered limit is below the count.
    @inlinable public var remaining: Int? { limit.map { max(0, $0 - taken) } }

    /// Whether nothing is left.
    @inlinable public var isUsedUp: Bool { limit.map { taken >= $0 } ?? false }

    /// Whether all of the request's `messages` fit.
    @inlinable
    public func fits(_ messages: Int) -> Bool {
        guard let limit else { return true }
        return taken + messages * weight <= limit
    }

    /// Whether a larger share is taken than of the other one. All that are used up are equally full.
    func isFuller(than other: Allowance) -> Bool {
        guard let limit, !other.isUsedUp else { return false }
        guard let otherLimit = other.limit, !isUsedUp else { return true }
        // The shares, taken / limit, are compared by cross products, because a division would round.
        let (share, otherShare) = (
            taken.multipliedFullWidth(by: otherLimit), other.taken.multipliedFullWidth(by: limit)
        )
        return (share.high, share.low) > (otherShare.high, otherShare.low)
    }
}

/// All allowances of a user, the period's first: a message must fit into each of them, and counts in each.
///
/// There is room for one beside the period's, so that the list of most users needs no memory of its own.
public struct Allowances: RandomAccessCollection, Sendable, Equatable {
    public var period: Allowance
    private var second: Allowance?
    private var others: [Allowance] = []

    public init(period: Allowance, _ second: Allowance? = nil) {
        self.period = period
        self.second = second
    }

    mutating func append(_ allowance: Allowance) {
        if second == nil { second = allowance } else { others.append(allowance) }
    }

    public var startIndex: Int { 0 }
    public var endIndex: Int { second == nil ? 1 : 2 + others.count }

    public subscript(position: Int) -> Allowance {
        precondition(indices.contains(position), "there is no such allowance")
        return position == 0 ? period : position == 1 ? second ?? period : others[position - 2]
    }

    /// Returns nil if the plan has no such allowance.
    public subscript(name: Allowance.Name) -> Allowance? { first { $0.name == name } }

    /// Calls `body` with each allowance. An iterator's copies would cost more than what is done with the allowances.
    @inline(__always)
    func visit(_ body: (Allowance) -> Void) {
        body(period)
        guard let second else { return }
        body(second)
        for other in others { body(other) }
    }

    /// The fullest allowance, and of equally full ones the first. It decides tier, display and banner of a user with
    /// access.
    public var fullest: Allowance {
        var fullest = period
        visit { if $0.isFuller(than: fullest) { fullest = $0 } }
        return fullest
    }

    /// The allowance because of which `messages` are refused; nil if they fit into each. It is the first one that is
    /// used up, and otherwise the first into which they do not fit.
    public func refusing(_ messages: Int) -> Allowance? {
        var refusing: Allowance?
        visit { allowance in
            guard !allowance.fits(messages) else { return }
            if refusing.map({ allowance.isUsedUp && !$0.isUsedUp }) ?? true { refusing = allowance }
        }
        return refusing
    }
}

/// An allowance beside the period's as answers show it.
public struct ShownAllowance: Sendable, Equatable {
    public var name: Allowance.Name
    /// The model or the member; nil for the window.
    public var part: MessagePart?
    /// Nil if the plan has no limit for the part, or only counts it. Then nothing remains, and nothing resets.
    public var limit: Int?
    /// Nil if the plan has no limit for the part.
    public var used: Int?
    public var remaining: Int?
    public var resetsAt: Instant?
    /// How long it lasts from its first message on; nil for the plan's period.
    public var seconds: Int?
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
