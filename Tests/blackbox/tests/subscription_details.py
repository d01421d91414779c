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
