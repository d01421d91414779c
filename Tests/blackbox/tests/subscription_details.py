"""What a user learns about a subscription that a store sold: its price, where it is changed, its trial, its refund."""

from support.stores import revenuecat, stripe_subscription
from support.webhooks import END, PURCHASE, Webhooks
from support.wire import Answer

LATER = "2026-03-18T12:00:00Z"
APP_STORE = "https://apps.apple.com/account/subscriptions"


class Details(Webhooks):
    CLOCK = LATER

    def usage(self, user):
        line = Answer(self.line.send_command(f"USAGE {user}")).fields
        over_http = self.service.http("GET", f"/v1/usage/{user}").json
        for name in ("price", "currency", "manage", "expires", "renews", "notice", "state_label"):
            self.assertEqual(line.get(name), over_http.get(name), name)
        return line

    def test_each_store_tells_the_price_and_the_app_store_has_its_own_page(self):
        for store, manage in (("APP_STORE", APP_STORE), ("MAC_APP_STORE", APP_STORE), ("PLAY_STORE", None)):
            with self.subTest(store=store):
                user, transaction = self.user(), self.transaction()
                sold = {"store": store, "price_in_purchased_currency": 9.99, "currency": "EUR"}
                self.deliver(revenuecat("INITIAL_PURCHASE", PURCHASE, user, transaction, expiration_at_ms=END, **sold))
                found = self.usage(user)
                self.assertEqual((found["price"], found["currency"], found.get("manage")), ("9.99", "EUR", manage))
        user, transaction = self.user(), self.transaction()
        self.deliver(self.app_store.notification("SUBSCRIBED", "INITIAL_BUY", PURCHASE, user, transaction, expiresDate=END))
        found = self.usage(user)
        self.assertEqual((found["price"], found["currency"], found["manage"]), ("4.99", "USD", APP_STORE))
        user, transaction = self.user(), self.transaction()
        self.deliver(stripe_subscription("created", "active", PURCHASE, user, transaction, (PURCHASE, END)))
        found = self.usage(user)
        self.assertEqual((found["price"], found["currency"], found.get("manage")), ("49.90", "USD", None))

    def test_a_cancelled_trial_a_promotion_and_a_refund_dated_ahead(self):
        user, transaction = self.user(), self.transaction()
        trial = {"period_type": "TRIAL", "expiration_at_ms": "2026-03-20T12:00:00Z"}
        self.deliver(revenuecat("INITIAL_PURCHASE", "2026-03-17T12:00:00Z", user, transaction, **trial))
        self.assertNotIn("notice", self.usage(user))
        cancelled = {**trial, "cancel_reason": "UNSUBSCRIBE"}
        self.deliver(revenuecat("CANCELLATION", "2026-03-18T11:00:00Z", user, transaction, **cancelled))
        found = self.usage(user)
        self.assertEqual((found["state"], found["notice"]), ("trial", "Your trial is active until March 20. You can subscribe anytime."))

        user, transaction = self.user(), self.transaction()
        promotion = {"store": "PROMOTIONAL", "period_type": "PROMOTIONAL", "expiration_at_ms": END}
        self.deliver(revenuecat("INITIAL_PURCHASE", PURCHASE, user, transaction, **promotion))
        found = self.usage(user)
        self.assertEqual((found["state"], found["expires"], found.get("renews")), ("active", END, None))

        for at in ("2026-03-18T12:00:59Z", "2026-03-18T12:01:00Z"):
            with self.subTest(at=at):
                user, transaction = self.user(), self.transaction()
                self.deliver(revenuecat("INITIAL_PURCHASE", PURCHASE, user, transaction, expiration_at_ms=END))
                refund = revenuecat("CANCELLATION", at, user, transaction, cancel_reason="CUSTOMER_SUPPORT")
                self.assertEqual(self.deliver(refund)["access"], False)
                self.assertEqual(Answer(self.line.send_command(f"CONSUME {user}"))["reason"], "revoked")

    def test_the_first_purchase_with_the_entitlement_premium_gives_paid(self):
        user, transaction = self.user(), self.transaction()
        sold = {"product_id": "an.unmapped.product", "entitlement_ids": ["premium"], "expiration_at_ms": END}
        answer = self.deliver(revenuecat("INITIAL_PURCHASE", PURCHASE, user, transaction, **sold))
        self.assertEqual((answer["outcome"], answer["plan"]), ("applied", "paid"))
