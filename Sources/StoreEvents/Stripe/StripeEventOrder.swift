import Usage

/// The instant of a Stripe event, by which events are ordered.
///
/// `created` has whole seconds, and Stripe creates several events in one second: a subscription and its invoice, for
/// instance. Of those, the one with the later period end counts as later. So the microseconds encode the distance to
/// it:
///
///     microseconds = 16 × hours + rank
///
/// - hours from `created` to the period's end, 0 to 62,499 (seven years; Stripe's longest trial has five): no two
///   periods of a subscription end within an hour of each other.
/// - rank, 0 to 15, orders events of the same period: a purchase comes first, and an invoice before the subscription,
///   which has the state after the payment.
///
/// The largest is 16 × 62,499 + 15 = 999,999, so that no event leaves its second. An event without a period has rank 0
/// and the instant `created`.
enum StripeEventOrder {
    private static let hoursMaximum: Int64 = 62_499
    private static let ranks: [String: Int64] = [
        "customer.subscription.created": 1, "invoice.payment_failed": 2, "invoice.paid": 3,
        "customer.subscription.updated": 4, "customer.subscription.resumed": 5, "customer.subscription.paused": 6,
        "customer.subscription.deleted": 7,
    ]

    static func instant(of kind: String, created: Instant, periodEnd: Instant?) -> Instant {
        let seconds = (periodEnd ?? created).secondsSince1970 - created.secondsSince1970
        let hours = min(max(0, seconds / 3_600), hoursMaximum)
        return Instant(microsecondsSince1970: created.microsecondsSince1970 + 16 * hours + (ranks[kind] ?? 0))
    }
}
