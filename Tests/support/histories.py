"""Histories of subscriptions: the events of a store, and the expected usage afterwards. One list for each store; every row of
the tables in docs/reference/webhooks.md is in one of them."""

from .stores import revenuecat, stripe, stripe_checkout, stripe_customer, stripe_invoice, stripe_refund, stripe_subscription
from .webhooks import END, PURCHASE

ALLOWED = {"status": "ALLOWED", "reason": None}
ACTIVE = {**ALLOWED, "state": "active", "plan": "paid", "limit": "800", "notice": None}
PRO = {**ALLOWED, "state": "active", "plan": "pro", "limit": "unlimited"}
CANCELLED = {**ALLOWED, "state": "cancelled", "plan": "paid", "expires": END}
GRACE = {**ALLOWED, "state": "grace_period", "plan": "paid"}
BLOCKED = {"status": "BLOCKED", "remaining": "0"}
EXPIRED = {**BLOCKED, "state": "expired", "reason": "expired", "previous_plan": "paid"}
RETRY = {**BLOCKED, "state": "billing_retry", "reason": "billing_retry"}
REVOKED = {**BLOCKED, "state": "revoked", "reason": "revoked"}
TRIAL = {**ALLOWED, "state": "trial", "plan": "trial", "limit": "100"}
TRIAL_ENDED = {**BLOCKED, "state": "trial", "reason": "trial_ended"}

MIDDLE, BEFORE_END, AFTER_END = "2026-03-20T12:00:00Z", "2026-04-01T11:59:59Z", END
MAY, GRACE_END, IN_GRACE = "2026-05-01T12:00:00Z", "2026-04-17T12:00:00Z", "2026-04-10T12:00:00Z"
TRIAL_END = "2026-03-04T12:00:00Z"


class History:
    """`events` are functions of a user and a transaction; `expectations` are instants after the last event, with the expected
    fields."""

    def __init__(self, name, events, *expectations):
        self.name, self.events, self.expectations = name, events, expectations


def revenuecat_event(kind, at, **fields):
    names = {"until": "expiration_at_ms", "bought": "purchased_at_ms", "grace": "grace_period_expiration_at_ms",
             "reason": "cancel_reason", "next": "new_product_id", "product": "product_id"}  # fmt: skip
    payload = {names.get(name, name): value for name, value in fields.items()}
    event = lambda user, transaction: revenuecat(kind, at, user, transaction, **{"expiration_at_ms": END, **payload})
    event.at = at
    return event


BOUGHT = revenuecat_event("INITIAL_PURCHASE", PURCHASE, bought=PURCHASE, until=END)
RENEWED = revenuecat_event("RENEWAL", END, bought=END, until=MAY)
UNSUBSCRIBED = revenuecat_event("CANCELLATION", "2026-03-10T12:00:00Z", reason="UNSUBSCRIBE")
REFUNDED = revenuecat_event("CANCELLATION", "2026-03-10T12:00:00Z", reason="CUSTOMER_SUPPORT")
LAPSED = revenuecat_event("EXPIRATION", END, expiration_reason="UNSUBSCRIBE")
TRIED = revenuecat_event("INITIAL_PURCHASE", PURCHASE, bought=PURCHASE, until=TRIAL_END, period_type="TRIAL")

REVENUECAT = [
    History("a purchase", [BOUGHT], (MIDDLE, ACTIVE), (BEFORE_END, ACTIVE), (AFTER_END, EXPIRED)),
    History("a trial that runs out", [TRIED], ("2026-03-03T12:00:00Z", TRIAL), (TRIAL_END, TRIAL_ENDED)),
    History(
        "a trial that converts",
        [TRIED, revenuecat_event("RENEWAL", TRIAL_END, bought=TRIAL_END, until=END, is_trial_conversion=True)],
        (MIDDLE, {**ACTIVE, "resets": END}),
    ),
    History("a renewal", [BOUGHT, RENEWED], (AFTER_END, ACTIVE), (MAY, EXPIRED)),
    *(
        History(f"a cancellation, {reason}", [BOUGHT, revenuecat_event("CANCELLATION", MIDDLE, reason=reason)],
                (MIDDLE, CANCELLED), (BEFORE_END, CANCELLED), (AFTER_END, EXPIRED))
        for reason in ("UNSUBSCRIBE", "PRICE_INCREASE", "DEVELOPER_INITIATED", "UNKNOWN")
    ),
    History("a cancellation that is taken back", [BOUGHT, UNSUBSCRIBED, revenuecat_event("UNCANCELLATION", MIDDLE)], (MIDDLE, ACTIVE)),
    History(
        "a billing issue with grace",
        [BOUGHT, revenuecat_event("BILLING_ISSUE", END, grace=GRACE_END)], (IN_GRACE, GRACE), (GRACE_END, RETRY),
    ),
    History(
        "a billing error with grace",
        [BOUGHT, revenuecat_event("CANCELLATION", END, reason="BILLING_ERROR", grace=GRACE_END)], (IN_GRACE, GRACE), (GRACE_END, RETRY),
    ),
    History("a billing issue without grace", [BOUGHT, revenuecat_event("BILLING_ISSUE", END, grace=None)], (AFTER_END, RETRY)),
    History(
        "a billing error without grace",
        [BOUGHT, revenuecat_event("CANCELLATION", END, reason="BILLING_ERROR", grace=None)], (AFTER_END, RETRY),
    ),
    History(
        "a billing error beside the issue, the only event with the end of grace",
        [BOUGHT, revenuecat_event("BILLING_ISSUE", END, grace=GRACE_END),
         revenuecat_event("CANCELLATION", "2026-04-01T12:00:01Z", reason="BILLING_ERROR", grace=...)],
        (IN_GRACE, GRACE), (GRACE_END, RETRY),
    ),
    History(
        "a billing error beside the issue, which has no end of grace",
        [BOUGHT, revenuecat_event("BILLING_ISSUE", END, grace=None),
         revenuecat_event("CANCELLATION", "2026-04-01T12:00:01Z", reason="BILLING_ERROR", grace=...)],
        ("2026-04-01T12:00:01Z", RETRY),
    ),
    History(
        "a billing issue that is resolved",
        [BOUGHT, revenuecat_event("BILLING_ISSUE", END, grace=GRACE_END),
         revenuecat_event("RENEWAL", IN_GRACE, bought=IN_GRACE, until=MAY)],
        (IN_GRACE, ACTIVE),
    ),
    History(
        "a billing issue that ends it",
        [BOUGHT, revenuecat_event("BILLING_ISSUE", END, grace=GRACE_END), revenuecat_event("EXPIRATION", GRACE_END, until=GRACE_END)],
        (GRACE_END, EXPIRED),
    ),
    History("a refund", [BOUGHT, REFUNDED], (MIDDLE, REVOKED)),
    History("a refund that is taken back", [BOUGHT, REFUNDED, revenuecat_event("REFUND_REVERSED", MIDDLE)], (MIDDLE, ACTIVE)),
    History("an expiration", [BOUGHT, UNSUBSCRIBED, LAPSED], (AFTER_END, EXPIRED)),
    History(
        "an expiration of a time that was paid for again",
        [BOUGHT, RENEWED, revenuecat_event("EXPIRATION", "2026-04-02T12:00:00Z", until=END)], ("2026-04-02T12:00:00Z", ACTIVE),
    ),
    History("a resubscription", [BOUGHT, UNSUBSCRIBED, LAPSED, revenuecat_event("RENEWAL", IN_GRACE, bought=IN_GRACE, until=MAY)],
            (IN_GRACE, ACTIVE)),
    History("a pause", [BOUGHT, revenuecat_event("SUBSCRIPTION_PAUSED", MIDDLE, auto_resume_at_ms=MAY)], (MIDDLE, ACTIVE), (END, EXPIRED)),
    History("a pause that begins", [BOUGHT, revenuecat_event("SUBSCRIPTION_PAUSED", MIDDLE), LAPSED], (AFTER_END, EXPIRED)),
    History(
        "a change of product",
        [BOUGHT, revenuecat_event("PRODUCT_CHANGE", MIDDLE, next="unlimited"),
         revenuecat_event("RENEWAL", END, product="unlimited", bought=END, until=MAY)],
        (AFTER_END, {**PRO, "previous_plan": "paid"}),
    ),
    History("a change of product that waits", [BOUGHT, revenuecat_event("PRODUCT_CHANGE", MIDDLE, next="unlimited")], (MIDDLE, ACTIVE)),
    History(
        "an extension", [BOUGHT, revenuecat_event("SUBSCRIPTION_EXTENDED", MIDDLE, until=GRACE_END)],
        (AFTER_END, ACTIVE), (GRACE_END, EXPIRED),
    ),
    History(
        "a pack of messages",
        [BOUGHT,
         revenuecat_event("NON_RENEWING_PURCHASE", MIDDLE, product="pack", until=None, original_transaction_id="{}-pack")],
        (MIDDLE, {**ACTIVE, "limit": "850"}),
    ),
    History(
        "a gift of RevenueCat's dashboard",
        [revenuecat_event("NON_RENEWING_PURCHASE", PURCHASE, bought=PURCHASE, product="rc_promo_premium_monthly", store="PROMOTIONAL",
                          period_type="PROMOTIONAL", entitlement_ids=["premium"])],
        (MIDDLE, {**ACTIVE, "expires": END, "renews": None}), (AFTER_END, EXPIRED),
    ),
    History(
        "a gift that is taken back",
        [revenuecat_event("NON_RENEWING_PURCHASE", PURCHASE, bought=PURCHASE, product="rc_promo_premium_monthly", store="PROMOTIONAL",
                          period_type="PROMOTIONAL", entitlement_ids=["premium"]),
         revenuecat_event("EXPIRATION", MIDDLE, until=MIDDLE, product="rc_promo_premium_monthly", store="PROMOTIONAL",
                          entitlement_ids=["premium"]),
         revenuecat_event("CANCELLATION", MIDDLE, until=MIDDLE, reason="UNSUBSCRIBE", product="rc_promo_premium_monthly",
                          store="PROMOTIONAL", entitlement_ids=["premium"])],
        (MIDDLE, EXPIRED),
    ),
    History(
        "a lifetime purchase that is refunded",
        [revenuecat_event("NON_RENEWING_PURCHASE", PURCHASE, bought=PURCHASE, until=None, product="unlimited"),
         revenuecat_event("CANCELLATION", MIDDLE, reason="CUSTOMER_SUPPORT", product="unlimited")],
        (MIDDLE, REVOKED), (AFTER_END, REVOKED),
    ),
    History(
        "a temporary grant",
        [revenuecat_event("TEMPORARY_ENTITLEMENT_GRANT", MIDDLE, until=...)], (MIDDLE, ACTIVE),
        ("2026-03-21T12:00:00Z", {**BLOCKED, "reason": "expired"}),
    ),
    History(
        "a temporary grant that becomes a purchase",
        [revenuecat_event("TEMPORARY_ENTITLEMENT_GRANT", PURCHASE, until=...),
         revenuecat_event("INITIAL_PURCHASE", "2026-03-01T18:00:00Z", bought=PURCHASE)],
        (MIDDLE, ACTIVE), (AFTER_END, EXPIRED),
    ),
    *(
        History(f"an event that does nothing, {kind}", [BOUGHT, revenuecat_event(kind, MIDDLE)], (MIDDLE, ACTIVE), (AFTER_END, EXPIRED))
        for kind in ("TEST", "INVOICE_ISSUANCE", "VIRTUAL_CURRENCY_TRANSACTION", "EXPERIMENT_ENROLLMENT", "A_TYPE_TO_COME")
    ),
]


def app_store_histories(store):
    def payload(kind, subtype, at, **fields):
        fields = {"expiresDate": END, "purchaseDate": PURCHASE, **fields}
        # Only the purchase names the user; the others belong to it by their transaction.
        event = lambda user, transaction: store.notification(
            kind, subtype, at, user if kind in ("SUBSCRIBED", "ONE_TIME_CHARGE") else None, transaction,
            **{n: transaction + v[2:] if isinstance(v, str) and v.startswith("{}") else v for n, v in fields.items()},
        )  # fmt: skip
        event.at = at
        return event

    bought = payload("SUBSCRIBED", "INITIAL_BUY", PURCHASE, status=1)
    renewed = payload("DID_RENEW", None, END, purchaseDate=END, expiresDate=MAY, status=1)
    unsubscribed = payload("DID_CHANGE_RENEWAL_STATUS", "AUTO_RENEW_DISABLED", "2026-03-10T12:00:00Z", status=1)
    refunded = payload("REFUND", None, "2026-03-10T12:00:00Z", revocationDate="2026-03-10T12:00:00Z", status=5)
    failed = payload("DID_FAIL_TO_RENEW", "GRACE_PERIOD", END, grace_until=GRACE_END, status=4)
    downgraded = payload("DID_CHANGE_RENEWAL_PREF", "DOWNGRADE", "2026-03-10T12:00:00Z", next_product="unlimited")
    upgraded = {"product": "unlimited", "purchaseDate": MIDDLE, "expiresDate": "2026-04-20T12:00:00Z"}
    return [
        History("a purchase", [bought], (MIDDLE, ACTIVE), (BEFORE_END, ACTIVE), (AFTER_END, EXPIRED)),
        History(
            "a resubscription",
            [bought, payload("EXPIRED", "VOLUNTARY", END, status=2),
             payload("SUBSCRIBED", "RESUBSCRIBE", IN_GRACE, purchaseDate=IN_GRACE, expiresDate=MAY, status=1)],
            (IN_GRACE, ACTIVE),
        ),
        History(
            "a trial that runs out",
            [payload("SUBSCRIBED", "INITIAL_BUY", PURCHASE, offerType=1, offerDiscountType="FREE_TRIAL", expiresDate=TRIAL_END)],
            ("2026-03-03T12:00:00Z", TRIAL), (TRIAL_END, TRIAL_ENDED),
        ),
        History(
            "a trial that converts",
            [payload("SUBSCRIBED", "INITIAL_BUY", PURCHASE, offerType=1, offerDiscountType="FREE_TRIAL", expiresDate=TRIAL_END),
             payload("DID_RENEW", None, TRIAL_END, purchaseDate=TRIAL_END, status=1)],
            (MIDDLE, {**ACTIVE, "resets": END}),
        ),
        History("a renewal", [bought, renewed], (AFTER_END, ACTIVE), (MAY, EXPIRED)),
        History(
            "a billing issue that is resolved",
            [bought, failed, payload("DID_RENEW", "BILLING_RECOVERY", IN_GRACE, purchaseDate=IN_GRACE, expiresDate=MAY, status=1)],
            (IN_GRACE, ACTIVE),
        ),
        History(
            "an upgrade", [bought, payload("DID_CHANGE_RENEWAL_PREF", "UPGRADE", MIDDLE, status=1, **upgraded)],
            (MIDDLE, {**PRO, "previous_plan": "paid"}),
        ),
        History(
            "an upgrade after a cancellation and a payment problem",
            [bought, unsubscribed, failed, payload("DID_CHANGE_RENEWAL_PREF", "UPGRADE", IN_GRACE, status=1, **upgraded)],
            (IN_GRACE, {**PRO, "previous_plan": "paid"}),
        ),
        History(
            "a downgrade",
            [bought, downgraded, payload("DID_RENEW", None, END, product="unlimited", purchaseDate=END, expiresDate=MAY)],
            (AFTER_END, {**PRO, "previous_plan": "paid"}),
        ),
        History("a downgrade that waits", [bought, downgraded], (MIDDLE, ACTIVE)),
        History(
            "a downgrade that is taken back",
            [bought, downgraded, payload("DID_CHANGE_RENEWAL_PREF", None, MIDDLE), renewed], (AFTER_END, ACTIVE),
        ),
        History("a cancellation", [bought, unsubscribed], (MIDDLE, CANCELLED), (AFTER_END, EXPIRED)),
        History(
            "a cancellation that is taken back",
            [bought, unsubscribed, payload("DID_CHANGE_RENEWAL_STATUS", "AUTO_RENEW_ENABLED", MIDDLE, status=1)],
            (MIDDLE, ACTIVE),
        ),
        History("an offer that upgrades", [bought, payload("OFFER_REDEEMED", "UPGRADE", MIDDLE, status=1, **upgraded)], (MIDDLE, PRO)),
        History(
            "an offer that downgrades", [bought, payload("OFFER_REDEEMED", "DOWNGRADE", MIDDLE, next_product="unlimited")],
            (MIDDLE, ACTIVE),
        ),
        History("an offer", [bought, payload("OFFER_REDEEMED", None, MIDDLE, expiresDate=MAY, status=1)], (AFTER_END, ACTIVE)),
        History("a failure with grace", [bought, failed], (IN_GRACE, GRACE), (GRACE_END, RETRY)),
        History(
            "a failure with grace without an end", [bought, payload("DID_FAIL_TO_RENEW", "GRACE_PERIOD", END)],
            (IN_GRACE, GRACE), (GRACE_END, RETRY),
        ),
        History("a failure without grace", [bought, payload("DID_FAIL_TO_RENEW", None, END, status=3)], (AFTER_END, RETRY)),
        History(
            "grace that is over", [bought, failed, payload("GRACE_PERIOD_EXPIRED", None, IN_GRACE, status=3)], (IN_GRACE, RETRY),
        ),
        *(
            History(f"an expiration, {subtype}", [bought, payload("EXPIRED", subtype, END, status=2)], (AFTER_END, EXPIRED))
            for subtype in ("VOLUNTARY", "BILLING_RETRY", "PRICE_INCREASE", "PRODUCT_NOT_FOR_SALE", "A_SUBTYPE_TO_COME")
        ),
        History("a refund", [bought, refunded], (MIDDLE, REVOKED)),
        History("a revocation", [bought, payload("REVOKE", None, "2026-03-10T12:00:00Z", status=5)], (MIDDLE, REVOKED)),
        History(
            "a refund that is taken back", [bought, refunded, payload("REFUND_REVERSED", None, MIDDLE, status=1)],
            (MIDDLE, ACTIVE), (AFTER_END, EXPIRED),
        ),
        History(
            "an extension", [bought, payload("RENEWAL_EXTENDED", None, MIDDLE, expiresDate=GRACE_END, status=1)],
            (AFTER_END, ACTIVE), (GRACE_END, EXPIRED),
        ),
        History(
            "a pack of messages",
            [bought, payload("ONE_TIME_CHARGE", None, MIDDLE, product="pack", quantity=2, originalTransactionId="{}9",
                          type="Consumable")],
            (MIDDLE, {**ACTIVE, "limit": "900"}),
        ),
        History(
            "an expiration that the status contradicts", [bought, payload("EXPIRED", "VOLUNTARY", MIDDLE, status=1)],
            (MIDDLE, ACTIVE),
        ),
        History("a renewal that was refunded by its status", [bought, payload("DID_RENEW", None, MIDDLE, status=5)], (MIDDLE, REVOKED)),
        History("a refund of a period long past", [bought, payload("REFUND", None, MIDDLE, status=1)], (MIDDLE, ACTIVE)),
        *(
            History(f"a notification that does nothing, {kind}", [bought, payload(kind, None, MIDDLE, status=1)],
                    (MIDDLE, ACTIVE), (AFTER_END, EXPIRED))
            for kind in (
                "RENEWAL_EXTENSION", "PRICE_INCREASE", "CONSUMPTION_REQUEST", "REFUND_DECLINED", "METADATA_UPDATE", "MIGRATION",
                "RESCIND_CONSENT", "EXTERNAL_PURCHASE_TOKEN", "TEST", "A_TYPE_TO_COME",
            )
        ),
    ]  # fmt: skip


def subscription(kind, status, at, period=(PURCHASE, END), names_user=True, **fields):
    event = lambda user, transaction: stripe_subscription(kind, status, at, user if names_user else None, transaction, period, **fields)
    event.at = at
    return event


def invoice(kind, at, period=(END, MAY), **fields):
    event = lambda user, transaction: stripe_invoice(kind, at, transaction, period, **fields)
    event.at = at
    return event


def refund(at, **fields):
    event = lambda user, transaction: stripe_refund(at, transaction, **fields)
    event.at = at
    return event


def checkout(at):
    event = lambda user, transaction: stripe_checkout(at, user, transaction)
    event.at = at
    return event


def other(kind, at):
    event = lambda user, transaction: stripe(kind, at, id=transaction, object="thing", customer=stripe_customer(transaction))
    event.at = at
    return event


SECOND, NEXT_ATTEMPT = "2026-04-01T13:00:00Z", "2026-04-04T13:00:00Z"
"""The instants of Stripe's charge for a period, an hour after its beginning, and of the next attempt."""
SUBSCRIBED = subscription("created", "active", PURCHASE)
CANCELS = subscription("updated", "active", "2026-03-10T12:00:00Z", at_end=True, previous={"cancel_at_period_end": False})
BEGINS_AGAIN = subscription("updated", "active", END, (END, MAY), previous={"current_period_end": 1})
"""Before the first charge."""
IS_DUE = subscription("updated", "past_due", SECOND, (END, MAY), previous={"status": "active"})
NOT_PAID = invoice("payment_failed", SECOND, next_attempt=NEXT_ATTEMPT)
CANCELLED_AT = "2026-03-25T12:00:00Z"
PAUSE = {"pause_collection": {"behavior": "void", "resumes_at": None}}
PAUSED = subscription("updated", "active", "2026-03-10T12:00:00Z", previous={"pause_collection": None}, **PAUSE)

STRIPE = [
    History("a subscription", [SUBSCRIBED], (MIDDLE, ACTIVE), (BEFORE_END, ACTIVE), (AFTER_END, EXPIRED)),
    History(
        "a subscription whose first payment took a while",
        [subscription("created", "incomplete", PURCHASE),
         invoice("payment_failed", PURCHASE, (PURCHASE, END), reason="subscription_create"),
         subscription("updated", "active", PURCHASE, previous={"status": "incomplete"})],
        (MIDDLE, {**ACTIVE, "resets": END}), (AFTER_END, EXPIRED),
    ),
    History(
        "a checkout that names its user",
        [checkout(PURCHASE), subscription("created", "active", PURCHASE, names_user=False)], (MIDDLE, ACTIVE), (AFTER_END, EXPIRED),
    ),
    History(
        "a trial that runs out",
        [subscription("created", "trialing", PURCHASE, (PURCHASE, TRIAL_END), trial_end=TRIAL_END)],
        ("2026-03-03T12:00:00Z", TRIAL), (TRIAL_END, TRIAL_ENDED),
    ),
    History(
        "a trial that converts",
        [subscription("created", "trialing", PURCHASE, (PURCHASE, TRIAL_END), trial_end=TRIAL_END),
         subscription("updated", "active", TRIAL_END, (TRIAL_END, END), trial_end=TRIAL_END, previous={"status": "trialing"}),
         invoice("paid", "2026-03-04T13:00:00Z", (TRIAL_END, END))],
        (MIDDLE, {**ACTIVE, "resets": END}), (AFTER_END, EXPIRED),
    ),
    History("a renewal", [SUBSCRIBED, BEGINS_AGAIN, invoice("paid", SECOND)], (SECOND, ACTIVE), (MAY, EXPIRED)),
    History("a cancellation", [SUBSCRIBED, CANCELS], (MIDDLE, CANCELLED), (AFTER_END, EXPIRED)),
    History(
        "a cancellation known only from the snapshot", [SUBSCRIBED, subscription("updated", "active", "2026-03-10T12:00:00Z", at_end=True)],
        (MIDDLE, CANCELLED), (AFTER_END, EXPIRED),
    ),
    History(
        "a cancellation on a day",
        [SUBSCRIBED, subscription("updated", "active", "2026-03-10T12:00:00Z", cancel_at=CANCELLED_AT, previous={"cancel_at": None})],
        (MIDDLE, {**CANCELLED, "expires": CANCELLED_AT}), (CANCELLED_AT, EXPIRED),
    ),
    History(
        "a cancellation that is taken back",
        [SUBSCRIBED, CANCELS, subscription("updated", "active", MIDDLE, previous={"cancel_at_period_end": True})], (MIDDLE, ACTIVE),
    ),
    History(
        "a cancellation that ends it",
        [SUBSCRIBED, CANCELS, subscription("deleted", "canceled", END, at_end=True, ended_at=END)], (AFTER_END, EXPIRED),
    ),
    History(
        "an end at once",
        [SUBSCRIBED, subscription("deleted", "canceled", MIDDLE, ended_at=MIDDLE)], (MIDDLE, EXPIRED),
    ),
    History(
        "a canceled status", [SUBSCRIBED, subscription("updated", "canceled", MIDDLE, ended_at=MIDDLE)], (MIDDLE, EXPIRED),
    ),
    History(
        "a payment that is due", [SUBSCRIBED, subscription("updated", "past_due", END)],
        (IN_GRACE, GRACE), ("2026-04-17T11:59:59Z", GRACE), (GRACE_END, RETRY),
    ),
    History(
        "a payment that is due, with the invoice in the event",
        [SUBSCRIBED, BEGINS_AGAIN, subscription("updated", "past_due", SECOND, (END, MAY), next_attempt=NEXT_ATTEMPT)],
        (SECOND, GRACE), (NEXT_ATTEMPT, RETRY),
    ),
    History(
        "a payment that failed",
        [SUBSCRIBED, BEGINS_AGAIN, NOT_PAID, IS_DUE], (SECOND, GRACE), (NEXT_ATTEMPT, RETRY),
    ),
    History(
        "a payment that failed and is made",
        [SUBSCRIBED, BEGINS_AGAIN, NOT_PAID, IS_DUE, invoice("paid", "2026-04-03T12:00:00Z")],
        ("2026-04-03T12:00:00Z", ACTIVE), (MAY, EXPIRED),
    ),
    History(
        "a payment that failed and is made, as the subscription reports it",
        [SUBSCRIBED, BEGINS_AGAIN, NOT_PAID, IS_DUE,
         subscription("updated", "active", IN_GRACE, (END, MAY), previous={"status": "past_due"})],
        (IN_GRACE, ACTIVE), (MAY, EXPIRED),
    ),
    History(
        "a payment that is given up",
        [SUBSCRIBED, BEGINS_AGAIN, NOT_PAID, IS_DUE,
         subscription("updated", "unpaid", IN_GRACE, (END, MAY), previous={"status": "past_due"})],
        (IN_GRACE, RETRY),
    ),
    History(
        "a payment whose failure ends it",
        [SUBSCRIBED, BEGINS_AGAIN, NOT_PAID, IS_DUE, subscription("deleted", "canceled", IN_GRACE, (END, MAY), ended_at=IN_GRACE)],
        (IN_GRACE, EXPIRED),
    ),
    History(
        "a plan that is not the first item",
        [subscription("created", "active", PURCHASE, product=("storage", "premium", "calls"))],
        (MIDDLE, ACTIVE), (AFTER_END, EXPIRED),
    ),
    History(
        "a renewal whose invoice has the plan's line last",
        [SUBSCRIBED, invoice("paid", SECOND, product=("storage", "premium"))], (SECOND, ACTIVE), (MAY, EXPIRED),
    ),
    History(
        "two plans in one subscription", [subscription("created", "active", PURCHASE, product=("premium", "unlimited"))],
        (MIDDLE, PRO), (AFTER_END, {**BLOCKED, "reason": "expired"}),
    ),
    *(
        History(f"{status}, with a price that is not mapped",
                [SUBSCRIBED, subscription(kind, status, MIDDLE, product=("storage", "calls"), ended_at=ended)], (MIDDLE, expected))
        for kind, status, ended, expected in (
            ("deleted", "canceled", MIDDLE, EXPIRED), ("updated", "canceled", MIDDLE, EXPIRED), ("paused", "paused", None, EXPIRED),
            ("updated", "unpaid", None, {"state": "billing_retry"}),
        )
    ),
    History(
        "a cancellation with a price that is not mapped",
        [SUBSCRIBED, subscription("updated", "active", MIDDLE, (PURCHASE, MAY), product="storage", at_end=True)],
        (MIDDLE, CANCELLED), (AFTER_END, EXPIRED),
    ),
    History("a pause of the collection", [SUBSCRIBED, PAUSED], (MIDDLE, {**CANCELLED, "renews": None}), (AFTER_END, EXPIRED)),
    History(
        "a pause of the collection in which the next period begins",
        [SUBSCRIBED, PAUSED, subscription("updated", "active", END, (END, MAY), previous={"current_period_end": 1}, **PAUSE)],
        (AFTER_END, EXPIRED),
    ),
    History(
        "a pause of the collection that ends",
        [SUBSCRIBED, PAUSED, subscription("updated", "active", MIDDLE, previous={"pause_collection": PAUSE["pause_collection"]})],
        (MIDDLE, ACTIVE), (AFTER_END, EXPIRED),
    ),
    History(
        "a pause of the collection that ends in a period that was not paid",
        [SUBSCRIBED, PAUSED, subscription("updated", "active", END, (END, MAY), previous={"current_period_end": 1}, **PAUSE),
         subscription("updated", "active", IN_GRACE, (END, MAY), previous={"pause_collection": PAUSE["pause_collection"]})],
        (IN_GRACE, EXPIRED),
    ),
    History(
        "a pause of the collection that ends in a period that was not paid, and another card",
        [SUBSCRIBED, PAUSED, subscription("updated", "active", END, (END, MAY), previous={"current_period_end": 1}, **PAUSE),
         subscription("updated", "active", IN_GRACE, (END, MAY),
                      previous={"pause_collection": PAUSE["pause_collection"], "default_payment_method": "pm_1"})],
        (IN_GRACE, EXPIRED),
    ),
    History(
        "a pause of the collection that ends in a period that was not paid, and a day of cancellation",
        [SUBSCRIBED, PAUSED, subscription("updated", "active", END, (END, MAY), previous={"current_period_end": 1}, **PAUSE),
         subscription("updated", "active", IN_GRACE, (END, MAY), cancel_at=GRACE_END,
                      previous={"pause_collection": PAUSE["pause_collection"], "cancel_at": None})],
        (IN_GRACE, EXPIRED),
    ),
    History("a refund before a pause of the collection", [SUBSCRIBED, refund("2026-03-05T12:00:00Z"), PAUSED], (MIDDLE, REVOKED)),
    History(
        "a refund before the end",
        [SUBSCRIBED, refund("2026-03-05T12:00:00Z"), subscription("deleted", "canceled", MIDDLE, ended_at=MIDDLE)], (MIDDLE, REVOKED),
    ),
    History(
        "a refund before another quantity",
        [SUBSCRIBED, refund("2026-03-05T12:00:00Z"),
         subscription("updated", "active", MIDDLE, previous={
             "quantity": 2, "items": {"data": [{"id": "si_premium", "quantity": 2, "price": {"id": "premium"}}]}})],
        (MIDDLE, REVOKED),
    ),
    History(
        "a cancellation before the invoice of its period is paid",
        [SUBSCRIBED, BEGINS_AGAIN,
         subscription("updated", "active", "2026-04-01T12:30:00Z", (END, MAY), at_end=True, previous={"cancel_at_period_end": False}),
         invoice("paid", SECOND)],
        (SECOND, {**CANCELLED, "expires": MAY, "renews": None}), (MAY, EXPIRED),
    ),
    History(
        "an end before the invoice of its period is paid",
        [SUBSCRIBED, BEGINS_AGAIN, subscription("deleted", "canceled", "2026-04-01T12:30:00Z", (END, MAY), ended_at="2026-04-01T12:30:00Z"),
         invoice("paid", SECOND)],
        (SECOND, {"state": "cancelled", "expires": MAY, "renews": None}), (MAY, EXPIRED),
    ),
    History("a pause", [SUBSCRIBED, subscription("paused", "paused", MIDDLE)], (MIDDLE, EXPIRED)),
    History(
        "a pause that ends",
        [SUBSCRIBED, subscription("paused", "paused", "2026-03-10T12:00:00Z"), subscription("resumed", "active", MIDDLE)],
        (MIDDLE, ACTIVE), (AFTER_END, EXPIRED),
    ),
    History(
        "an upgrade",
        [SUBSCRIBED, subscription("updated", "active", MIDDLE, product="unlimited", previous={"items": {}})],
        (MIDDLE, {**PRO, "previous_plan": "paid"}),
    ),
    History("a refund", [SUBSCRIBED, refund("2026-03-10T12:00:00Z")], (MIDDLE, REVOKED)),
    History(
        "a refund before a cancellation", [SUBSCRIBED, refund("2026-03-05T12:00:00Z"), CANCELS], (MIDDLE, REVOKED), (AFTER_END, REVOKED),
    ),
    History("a refund in part", [SUBSCRIBED, refund("2026-03-10T12:00:00Z", refunded=False)], (MIDDLE, ACTIVE)),
    History("a refund of something else", [SUBSCRIBED, refund("2026-03-10T12:00:00Z", invoice=None)], (MIDDLE, ACTIVE)),
    *(
        History(f"an event that does nothing, {kind}", [SUBSCRIBED, other(kind, MIDDLE)], (MIDDLE, ACTIVE), (AFTER_END, EXPIRED))
        for kind in ("invoice.created", "customer.updated", "payment_intent.succeeded", "a_type.to_come")
    ),
]  # fmt: skip
