import Billing
import Usage

/// A row of `headroom.subscriptions`, as JSON.
struct SubscriptionRow: Codable, Equatable {
    var userId: String
    @ExactText var originalTransactionId: String
    var plan: String
    var startedAt: Instant?
    var expiresAt: Instant?
    var graceUntil: Instant?
    var billingIssueAt: Instant?
    var unsubscribedAt: Instant?
    var revokedAt: Instant?
    var product: ExactText?
    var nextPlan: String?
    var nextProduct: ExactText?
    var environment: String?
    var eventAt: Instant?
    var anchorDay: Int?
    var periodStartedAt: Instant?
    var periodEndsAt: Instant?
    var periodDay: Int?
    var store: String?
    var renews: Bool?
    var price: String?
    var currency: String?

    enum CodingKeys: String, CodingKey {
        case userId = "user_id"
        case originalTransactionId = "original_transaction_id"
        case plan
        case startedAt = "started_at"
        case expiresAt = "expires_at"
        case graceUntil = "grace_until"
        case billingIssueAt = "billing_issue_at"
        case unsubscribedAt = "unsubscribed_at"
        case revokedAt = "revoked_at"
        case product
        case nextPlan = "next_plan"
        case nextProduct = "next_product"
        case environment
        case eventAt = "event_at"
        case anchorDay = "anchor_day"
        case periodStartedAt = "period_started_at"
        case periodEndsAt = "period_ends_at"
        case periodDay = "period_day"
        case store, renews, price, currency
    }

    /// The transaction, as texts are compared.
    var name: ExactText { _originalTransactionId }

    /// The value is false for the plan that an operator set, and for the trial that a first message began.
    var isOfStore: Bool { !BillingEvent.reservedTransactions.contains(originalTransactionId) }

    /// Makes the row of a subscription; nil if its plan is unknown, because such a subscription has no row.
    init?(_ subscription: StoreSubscription, of user: UserID) {
        guard let plan = subscription.plan else { return nil }
        userId = user.description
        originalTransactionId = subscription.transaction
        self.plan = plan
        startedAt = subscription.startedAt
        expiresAt = subscription.expiresAt
        graceUntil = subscription.graceUntil
        billingIssueAt = subscription.billingIssueAt
        unsubscribedAt = subscription.unsubscribedAt
        revokedAt = subscription.revokedAt
        product = subscription.product.map { ExactText($0) }
        nextPlan = subscription.nextPlan
        nextProduct = subscription.nextProduct.map { ExactText($0) }
        environment = subscription.environment
        eventAt = subscription.eventAt
        anchorDay = subscription.anchorDay
        periodStartedAt = subscription.periods?.startedAt
        periodEndsAt = subscription.periods?.endsAt
        periodDay = subscription.periods?.anchorDay
        store = subscription.store
        renews = subscription.renews
        price = subscription.price
        currency = subscription.currency
    }
}

extension StoreSubscription {
    init(_ row: SubscriptionRow) {
        self.init(transaction: row.originalTransactionId)
        plan = row.plan
        product = row.product?.text
        startedAt = row.startedAt
        expiresAt = row.expiresAt
        graceUntil = row.graceUntil
        billingIssueAt = row.billingIssueAt
        unsubscribedAt = row.unsubscribedAt
        revokedAt = row.revokedAt
        nextPlan = row.nextPlan
        nextProduct = row.nextProduct?.text
        environment = row.environment
        eventAt = row.eventAt
        anchorDay = row.anchorDay
        store = row.store
        renews = row.renews
        price = row.price
        currency = row.currency
    }
}
