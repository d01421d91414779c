import Usage

/// One effect of an event. `resolved(by:at:)` replaces the store's products by plans.
public struct BillingEffect: Codable, Sendable, Equatable {
    public enum Kind: String, Codable, Sendable, CaseIterable {
        case purchased, renewed, cancelled, uncancelled
        case gracePeriod = "grace_period"
        case billingRetry = "billing_retry"
        case expired, revoked, reinstated
        case productChanged = "product_changed"
        case extended
        /// A one-time purchase: of messages, or of a plan, which `resolved(by:at:)` makes `purchased`.
        case granted
        /// Access before the store has verified a purchase; 24 hours at most.
        case temporary
        /// Subscriptions move from one customer to another.
        case transferred
        /// Several identities belong to one customer.
        case merged
        /// The transaction, if it has one, and the event's identities belong to the event's user: `CustomerLink`.
        case linked
    }

    /// The kind of period until the next renewal.
    public enum Period: String, Codable, Sendable, CaseIterable {
        case normal, trial, intro
    }

    /// What was sold, for answers and pages. It does not change what a user may send.
    public struct Sale: Codable, Sendable, Equatable {
        /// The store that sold it: `app_store`. RevenueCat sells through several.
        public var store: String?
        /// The price as paid, a decimal number in units of `currency`: "9.99".
        public var price: String?
        /// The code by ISO 4217: "USD".
        public var currency: String?
        /// The value is false if the store never renews it, such as a promotion or a pass, and nil otherwise.
        public var renews: Bool?

        public init(store: String? = nil, price: String? = nil, currency: String? = nil, renews: Bool? = nil) {
            self.store = store
            self.price = price
            self.currency = currency
            self.renews = renews
        }
    }

    public var kind: Kind
    /// The original transaction: it names the subscription through all its renewals.
    public var transaction: String?
    public var product: String?
    public var period: Period?
    /// The product from the next renewal on; nil cancels a pending change.
    public var nextProduct: String?
    public var started: Instant?
    public var expires: Instant?
    public var graceUntil: Instant?
    /// The value is true if the store reports the plan and the dates of a period without a payment. Such an effect
    /// undoes no refund. A changed product's `expires` is then only an earlier end, or any end if the period from
    /// `started` on was paid.
    public var isUnpaid: Bool?
    /// The number of units of a one-time purchase, also of one that is refunded.
    public var quantity: Int?
    /// Another name by which the product may be mapped: the product of a Stripe price.
    public var alternateProduct: String?
    /// The store's names of the access that was bought.
    public var entitlements: [String]?
    /// The plan of the product, set by `resolved(by:at:)`. A direct event names the plan itself.
    public var plan: String?
    /// The plan of a trial's product after the trial.
    public var regularPlan: String?
    public var nextPlan: String?
    /// The messages of a one-time purchase in total, set by `resolved(by:at:)`.
    public var messages: Int?
    /// The day of the month on which periods begin; nil if it is that on which the subscription began.
    public var anchorDay: Int?
    /// The instant from which the store counts periods; nil if it is the start of the payment.
    public var anchor: Instant?
    public var sale: Sale?
    public var from: [String]?
    public var to: [String]?
    public var identities: [String]?

    enum CodingKeys: String, CodingKey {
        case kind, transaction, product, period
        case nextProduct = "next_product"
        case started, expires
        case graceUntil = "grace_until"
        case isUnpaid = "unpaid"
        case quantity
        case alternateProduct = "alternate_product"
        case entitlements, plan
        case regularPlan = "regular_plan"
        case nextPlan = "next_plan"
        case messages
        case anchorDay = "anchor"
        case anchor = "anchor_at"
        case sale, from, to, identities
    }

    public init(
        _ kind: Kind,
        transaction: String? = nil,
        product: String? = nil,
        period: Period? = nil,
        nextProduct: String? = nil,
        started: Instant? = nil,
        expires: Instant? = nil,
        graceUntil: Instant? = nil,
        quantity: Int? = nil
    ) {
        self.kind = kind
        self.transaction = transaction
        self.product = product
        self.period = period
        self.nextProduct = nextProduct
        self.started = started
        self.expires = expires
        self.graceUntil = graceUntil
        self.quantity = quantity
    }

    public static func transferred(from: [String], to: [String]) -> BillingEffect {
        var effect = BillingEffect(.transferred)
        effect.from = from
        effect.to = to
        return effect
    }

    public static func merged(_ identities: [String]) -> BillingEffect {
        var effect = BillingEffect(.merged)
        effect.identities = identities
        return effect
    }
}
