/// Messages of a user's balances that are left, which a period's limit includes.
public struct Balances: Sendable, Equatable {
    public var messages: Int
    /// When the first of them ends from which messages are taken; nil is never.
    public var expiresAt: Instant?

    public init(messages: Int, expiresAt: Instant? = nil) {
        self.messages = messages
        self.expiresAt = expiresAt
    }
}

extension UsageSnapshot {
    /// The balances after the counted and held messages. Those beyond the limit without balances were taken from the
    /// balance that ends first: `headroom.drawn_messages` in the database.
    public var balances: Balances? {
        guard var balances = entitlement.balances else { return nil }
        if let limit {
            balances.messages -= max(0, min(used + held - (limit - balances.messages), balances.messages))
        }
        return balances.messages > 0 ? balances : nil
    }

    public mutating func set(_ balances: Balances?) {
        if entitlement.balances != balances { entitlement = entitlement.with(balances: .some(balances)) }
    }
}
