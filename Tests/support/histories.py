"""What stores tell of a subscription, event by event, and where its user stands then. One list for each store: every line
of both tables is in one of them."""

from .stores import revenuecat
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
    """`events` are functions of a user and a transaction; `standings` are instants, all after the last event, and what
    holds at each."""

    def __init__(self, name, events, *standings):
        self.name, self.events, self.standings = name, events, standings


def rc(kind, at, **fields):
    names = {"until": "expiration_at_ms", "bought": "purchased_at_ms", "grace": "grace_period_expiration_at_ms",
             "reason": "cancel_reason", "next": "new_product_id", "product": "product_id"}  # fmt: skip
    told = {names.get(name, name): value for name, value in fields.items()}
    event = lambda user, transaction: revenuecat(kind, at, user, transaction, **{"expiration_at_ms": END, **told})  # noqa: E731
    event.at = at
    return event


BOUGHT = rc("INITIAL_PURCHASE", PURCHASE, bought=PURCHASE, until=END)
RENEWED = rc("RENEWAL", END, bought=END, until=MAY)
UNSUBSCRIBED = rc("CANCELLATION", "2026-03-10T12:00:00Z", reason="UNSUBSCRIBE")
REFUNDED = rc("CANCELLATION", "2026-03-10T12:00:00Z", reason="CUSTOMER_SUPPORT")
LAPSED = rc("EXPIRATION", END, expiration_reason="UNSUBSCRIBE")
TRIED = rc("INITIAL_PURCHASE", PURCHASE, bought=PURCHASE, until=TRIAL_END, period_type="TRIAL")

REVENUECAT = [
    History("a purchase", [BOUGHT], (MIDDLE, ACTIVE), (BEFORE_END, ACTIVE), (AFTER_END, EXPIRED)),
    History("a trial that runs out", [TRIED], ("2026-03-03T12:00:00Z", TRIAL), (TRIAL_END, TRIAL_ENDED)),
    History(
        "a trial that converts",
        [TRIED, rc("RENEWAL", TRIAL_END, bought=TRIAL_END, until=END, is_trial_conversion=True)],
        (MIDDLE, {**ACTIVE, "resets": "2026-04-04T00:00:00Z"}),
    ),
    History("a renewal", [BOUGHT, RENEWED], (AFTER_END, ACTIVE), (MAY, EXPIRED)),
    *(
        History(f"a cancellation, {reason}", [BOUGHT, rc("CANCELLATION", MIDDLE, reason=reason)],
                (MIDDLE, CANCELLED), (BEFORE_END, CANCELLED), (AFTER_END, EXPIRED))
        for reason in ("UNSUBSCRIBE", "PRICE_INCREASE", "DEVELOPER_INITIATED", "UNKNOWN")
    ),
    History("a cancellation that is taken back", [BOUGHT, UNSUBSCRIBED, rc("UNCANCELLATION", MIDDLE)], (MIDDLE, ACTIVE)),
    History(
        "a billing issue with grace",
        [BOUGHT, rc("BILLING_ISSUE", END, grace=GRACE_END)], (IN_GRACE, GRACE), (GRACE_END, RETRY),
    ),
    History(
        "a billing error with grace",
        [BOUGHT, rc("CANCELLATION", END, reason="BILLING_ERROR", grace=GRACE_END)], (IN_GRACE, GRACE), (GRACE_END, RETRY),
    ),
    History("a billing issue without grace", [BOUGHT, rc("BILLING_ISSUE", END, grace=None)], (AFTER_END, RETRY)),
    History(
        "a billing error without grace",
        [BOUGHT, rc("CANCELLATION", END, reason="BILLING_ERROR", grace=None)], (AFTER_END, RETRY),
    ),
    History(
        "a billing error beside the issue, which alone tells of grace",
        [BOUGHT, rc("BILLING_ISSUE", END, grace=GRACE_END),
         rc("CANCELLATION", "2026-04-01T12:00:01Z", reason="BILLING_ERROR", grace=...)],
        (IN_GRACE, GRACE), (GRACE_END, RETRY),
    ),
    History(
        "a billing error beside the issue, which tells of no grace",
        [BOUGHT, rc("BILLING_ISSUE", END, grace=None),
         rc("CANCELLATION", "2026-04-01T12:00:01Z", reason="BILLING_ERROR", grace=...)],
        ("2026-04-01T12:00:01Z", RETRY),
    ),
    History(
        "a billing issue that is mended",
        [BOUGHT, rc("BILLING_ISSUE", END, grace=GRACE_END), rc("RENEWAL", IN_GRACE, bought=IN_GRACE, until=MAY)],
        (IN_GRACE, ACTIVE),
    ),
    History(
        "a billing issue that ends it",
        [BOUGHT, rc("BILLING_ISSUE", END, grace=GRACE_END), rc("EXPIRATION", GRACE_END, until=GRACE_END)],
        (GRACE_END, EXPIRED),
    ),
    History("a refund", [BOUGHT, REFUNDED], (MIDDLE, REVOKED)),
    History("a refund that is taken back", [BOUGHT, REFUNDED, rc("REFUND_REVERSED", MIDDLE)], (MIDDLE, ACTIVE)),
    History("an expiration", [BOUGHT, UNSUBSCRIBED, LAPSED], (AFTER_END, EXPIRED)),
    History(
        "an expiration of a time that was paid for again",
        [BOUGHT, RENEWED, rc("EXPIRATION", "2026-04-02T12:00:00Z", until=END)], ("2026-04-02T12:00:00Z", ACTIVE),
    ),
    History("a resubscription", [BOUGHT, UNSUBSCRIBED, LAPSED, rc("RENEWAL", IN_GRACE, bought=IN_GRACE, until=MAY)],
            (IN_GRACE, ACTIVE)),
    History("a pause", [BOUGHT, rc("SUBSCRIPTION_PAUSED", MIDDLE, auto_resume_at_ms=MAY)], (MIDDLE, ACTIVE), (END, EXPIRED)),
    History("a pause that begins", [BOUGHT, rc("SUBSCRIPTION_PAUSED", MIDDLE), LAPSED], (AFTER_END, EXPIRED)),
    History(
        "a change of product",
        [BOUGHT, rc("PRODUCT_CHANGE", MIDDLE, next="unlimited"), rc("RENEWAL", END, product="unlimited", bought=END, until=MAY)],
        (AFTER_END, {**PRO, "previous_plan": "paid"}),
    ),
    History("a change of product that waits", [BOUGHT, rc("PRODUCT_CHANGE", MIDDLE, next="unlimited")], (MIDDLE, ACTIVE)),
    History(
        "an extension", [BOUGHT, rc("SUBSCRIPTION_EXTENDED", MIDDLE, until=GRACE_END)], (AFTER_END, ACTIVE), (GRACE_END, EXPIRED),
    ),
    History(
        "a pack of messages", [BOUGHT, rc("NON_RENEWING_PURCHASE", MIDDLE, product="pack", until=None,
                                          original_transaction_id="{}-pack")],
        (MIDDLE, {**ACTIVE, "limit": "850"}),
    ),
    History(
        "a temporary grant",
        [rc("TEMPORARY_ENTITLEMENT_GRANT", MIDDLE, until=...)], (MIDDLE, ACTIVE), ("2026-03-21T12:00:00Z", {**BLOCKED, "reason": "expired"}),
    ),
    History(
        "a temporary grant that becomes a purchase",
        [rc("TEMPORARY_ENTITLEMENT_GRANT", PURCHASE, until=...), rc("INITIAL_PURCHASE", "2026-03-01T18:00:00Z", bought=PURCHASE)],
        (MIDDLE, ACTIVE), (AFTER_END, EXPIRED),
    ),
    *(
        History(f"an event that does nothing, {kind}", [BOUGHT, rc(kind, MIDDLE)], (MIDDLE, ACTIVE), (AFTER_END, EXPIRED))
        for kind in ("TEST", "INVOICE_ISSUANCE", "VIRTUAL_CURRENCY_TRANSACTION", "EXPERIMENT_ENROLLMENT", "A_TYPE_TO_COME")
    ),
]


def app_store_histories(store):
    def told(kind, subtype, at, **fields):
        fields = {"expiresDate": END, "purchaseDate": PURCHASE, **fields}
        # Only the purchase names the user: the others are found by their transaction.
        event = lambda user, transaction: store.notification(  # noqa: E731
            kind, subtype, at, user if kind in ("SUBSCRIBED", "ONE_TIME_CHARGE") else None, transaction,
            **{n: transaction + v[2:] if isinstance(v, str) and v.startswith("{}") else v for n, v in fields.items()},
        )  # fmt: skip
        event.at = at
        return event

    bought = told("SUBSCRIBED", "INITIAL_BUY", PURCHASE, status=1)
    renewed = told("DID_RENEW", None, END, purchaseDate=END, expiresDate=MAY, status=1)
    unsubscribed = told("DID_CHANGE_RENEWAL_STATUS", "AUTO_RENEW_DISABLED", "2026-03-10T12:00:00Z", status=1)
    refunded = told("REFUND", None, "2026-03-10T12:00:00Z", revocationDate="2026-03-10T12:00:00Z", status=5)
    failed = told("DID_FAIL_TO_RENEW", "GRACE_PERIOD", END, grace_until=GRACE_END, status=4)
    downgraded = told("DID_CHANGE_RENEWAL_PREF", "DOWNGRADE", "2026-03-10T12:00:00Z", next_product="unlimited")
    upgraded = {"product": "unlimited", "purchaseDate": MIDDLE, "expiresDate": "2026-04-20T12:00:00Z"}
    return [
        History("a purchase", [bought], (MIDDLE, ACTIVE), (BEFORE_END, ACTIVE), (AFTER_END, EXPIRED)),
        History(
            "a resubscription",
            [bought, told("EXPIRED", "VOLUNTARY", END, status=2),
             told("SUBSCRIBED", "RESUBSCRIBE", IN_GRACE, purchaseDate=IN_GRACE, expiresDate=MAY, status=1)],
            (IN_GRACE, ACTIVE),
        ),
        History(
            "a trial that runs out",
            [told("SUBSCRIBED", "INITIAL_BUY", PURCHASE, offerType=1, offerDiscountType="FREE_TRIAL", expiresDate=TRIAL_END)],
            ("2026-03-03T12:00:00Z", TRIAL), (TRIAL_END, TRIAL_ENDED),
        ),
        History(
            "a trial that converts",
            [told("SUBSCRIBED", "INITIAL_BUY", PURCHASE, offerType=1, offerDiscountType="FREE_TRIAL", expiresDate=TRIAL_END),
             told("DID_RENEW", None, TRIAL_END, purchaseDate=TRIAL_END, status=1)],
            (MIDDLE, {**ACTIVE, "resets": "2026-04-04T00:00:00Z"}),
        ),
        History("a renewal", [bought, renewed], (AFTER_END, ACTIVE), (MAY, EXPIRED)),
        History(
            "a billing issue that is mended",
            [bought, failed, told("DID_RENEW", "BILLING_RECOVERY", IN_GRACE, purchaseDate=IN_GRACE, expiresDate=MAY, status=1)],
            (IN_GRACE, ACTIVE),
        ),
        History(
            "an upgrade", [bought, told("DID_CHANGE_RENEWAL_PREF", "UPGRADE", MIDDLE, status=1, **upgraded)],
            (MIDDLE, {**PRO, "previous_plan": "paid"}),
        ),
        History(
            "an upgrade after a cancellation and a payment problem",
            [bought, unsubscribed, failed, told("DID_CHANGE_RENEWAL_PREF", "UPGRADE", IN_GRACE, status=1, **upgraded)],
            (IN_GRACE, {**PRO, "previous_plan": "paid"}),
        ),
        History(
            "a downgrade",
            [bought, downgraded, told("DID_RENEW", None, END, product="unlimited", purchaseDate=END, expiresDate=MAY)],
            (AFTER_END, {**PRO, "previous_plan": "paid"}),
        ),
        History("a downgrade that waits", [bought, downgraded], (MIDDLE, ACTIVE)),
        History(
            "a downgrade that is taken back",
            [bought, downgraded, told("DID_CHANGE_RENEWAL_PREF", None, MIDDLE), renewed], (AFTER_END, ACTIVE),
        ),
        History("a cancellation", [bought, unsubscribed], (MIDDLE, CANCELLED), (AFTER_END, EXPIRED)),
        History(
            "a cancellation that is taken back",
            [bought, unsubscribed, told("DID_CHANGE_RENEWAL_STATUS", "AUTO_RENEW_ENABLED", MIDDLE, status=1)],
            (MIDDLE, ACTIVE),
        ),
        History("an offer that upgrades", [bought, told("OFFER_REDEEMED", "UPGRADE", MIDDLE, status=1, **upgraded)], (MIDDLE, PRO)),
        History(
            "an offer that downgrades", [bought, told("OFFER_REDEEMED", "DOWNGRADE", MIDDLE, next_product="unlimited")],
            (MIDDLE, ACTIVE),
        ),
        History("an offer", [bought, told("OFFER_REDEEMED", None, MIDDLE, expiresDate=MAY, status=1)], (AFTER_END, ACTIVE)),
        History("a failure with grace", [bought, failed], (IN_GRACE, GRACE), (GRACE_END, RETRY)),
        History(
            "a failure with grace of which no end is told", [bought, told("DID_FAIL_TO_RENEW", "GRACE_PERIOD", END)],
            (IN_GRACE, GRACE), (GRACE_END, RETRY),
        ),
        History("a failure without grace", [bought, told("DID_FAIL_TO_RENEW", None, END, status=3)], (AFTER_END, RETRY)),
        History(
            "grace that is over", [bought, failed, told("GRACE_PERIOD_EXPIRED", None, IN_GRACE, status=3)], (IN_GRACE, RETRY),
        ),
        *(
            History(f"an expiration, {subtype}", [bought, told("EXPIRED", subtype, END, status=2)], (AFTER_END, EXPIRED))
            for subtype in ("VOLUNTARY", "BILLING_RETRY", "PRICE_INCREASE", "PRODUCT_NOT_FOR_SALE", "A_SUBTYPE_TO_COME")
        ),
        History("a refund", [bought, refunded], (MIDDLE, REVOKED)),
        History("a revocation", [bought, told("REVOKE", None, "2026-03-10T12:00:00Z", status=5)], (MIDDLE, REVOKED)),
        History(
            "a refund that is taken back", [bought, refunded, told("REFUND_REVERSED", None, MIDDLE, status=1)],
            (MIDDLE, ACTIVE), (AFTER_END, EXPIRED),
        ),
        History(
            "an extension", [bought, told("RENEWAL_EXTENDED", None, MIDDLE, expiresDate=GRACE_END, status=1)],
            (AFTER_END, ACTIVE), (GRACE_END, EXPIRED),
        ),
        History(
            "a pack of messages",
            [bought, told("ONE_TIME_CHARGE", None, MIDDLE, product="pack", quantity=2, originalTransactionId="{}9",
                          type="Consumable")],
            (MIDDLE, {**ACTIVE, "limit": "900"}),
        ),
        History(
            "an expiration that the status knows not to be one", [bought, told("EXPIRED", "VOLUNTARY", MIDDLE, status=1)],
            (MIDDLE, ACTIVE),
        ),
        History("a renewal that the status knows to be refunded", [bought, told("DID_RENEW", None, MIDDLE, status=5)], (MIDDLE, REVOKED)),
        History("a refund of a period long past", [bought, told("REFUND", None, MIDDLE, status=1)], (MIDDLE, ACTIVE)),
        *(
            History(f"a notification that does nothing, {kind}", [bought, told(kind, None, MIDDLE, status=1)],
                    (MIDDLE, ACTIVE), (AFTER_END, EXPIRED))
            for kind in (
                "RENEWAL_EXTENSION", "PRICE_INCREASE", "CONSUMPTION_REQUEST", "REFUND_DECLINED", "METADATA_UPDATE", "MIGRATION",
                "RESCIND_CONSENT", "EXTERNAL_PURCHASE_TOKEN", "TEST", "A_TYPE_TO_COME",
            )
        ),
    ]  # fmt: skip
