import Usage

/// A user and one subscription as the audit log records them, before or after an event. `headroom.subscription_record`
/// adds the plan and the state of the user.
struct AuditRecord: Encodable {
    struct Subscription: Encodable {
        var transaction: String
        var bought: String
        var product: String?
        var paidUntil: String?
        var graceUntil: String?
        var billingIssue: String?
        var unsubscribed: String?
        var revoked: String?
        var nextPlan: String?
        var nextProduct: String?

        enum CodingKeys: String, CodingKey {
            case transaction, bought, product
            case paidUntil = "paid_until"
            case graceUntil = "grace_until"
            case billingIssue = "billing_issue"
            case unsubscribed, revoked
            case nextPlan = "next_plan"
            case nextProduct = "next_product"
        }

        /// Instants to the second, as elsewhere in the audit log.
        init(_ row: SubscriptionRow) {
            transaction = row.originalTransactionId
            bought = row.plan
            product = row.product
            paidUntil = row.expiresAt?.text
            graceUntil = row.graceUntil?.text
            billingIssue = row.billingIssueAt?.text
            unsubscribed = row.unsubscribedAt?.text
            revoked = row.revokedAt?.text
            nextPlan = row.nextPlan
            nextProduct = row.nextProduct
        }
    }

    var anchor: Int
    var previousPlan: String?
    var subscription: Subscription?

    enum CodingKeys: String, CodingKey {
        case anchor
        case previousPlan = "previous_plan"
        case subscription
    }

    init(_ anchor: Int, _ previousPlan: String?, _ subscription: SubscriptionRow?) {
        self.anchor = anchor
        self.previousPlan = previousPlan
        self.subscription = subscription.map { Subscription($0) }
    }
}
