"""What is bought once: lifetime purchases, passes and packs of messages, by each store's webhook."""

import json

from support.postgres import SQLError
from support.service import command
from support.stores import revenuecat, stripe_manual_invoice, stripe_refund, stripe_sale, stripe_subscription
from support.webhooks import END, PURCHASE, Webhooks

LATER, NEXT_SECOND, IN_90_DAYS = "2026-03-10T12:00:00Z", "2026-03-10T12:00:01Z", "2026-06-08T12:00:00Z"
FOR_GOOD = {"plan": "pro", "state": "active", "expires": None, "renews": None, "status": "ALLOWED"}


class BoughtOnce(Webhooks):
    CLOCK = LATER

    def product(self, *arguments, status=0):
        done = command("product", *arguments, database_url=self.database_url)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout if status == 0 else done.stderr

    def one_time_charge(self, user, transaction, product, kind="ONE_TIME_CHARGE", at=LATER, **fields):
        return self.app_store.notification(
            kind, None, at, user, transaction, product, purchaseDate=LATER, originalTransactionId=transaction, without=("renewal",),
            **fields,
        )  # fmt: skip

    def test_a_lifetime_purchase_gives_its_plan_for_good_beside_an_old_subscription_until_it_is_refunded(self):
        user, monthly = self.purchase(expiration_at_ms=LATER)
        lifetime = self.transaction()
        sold = {"product_id": "unlimited", "purchased_at_ms": LATER, "expiration_at_ms": None}
        self.assertEqual(self.deliver(revenuecat("NON_RENEWING_PURCHASE", LATER, user, lifetime, **sold))["outcome"], "applied")
        self.assert_answers(user, FOR_GOOD, "bought")
        self.deliver(revenuecat("EXPIRATION", LATER, user, monthly, expiration_at_ms=LATER))
        self.assert_answers(user, FOR_GOOD, "after the subscription's end")
        self.deliver(revenuecat("CANCELLATION", NEXT_SECOND, user, lifetime, cancel_reason="CUSTOMER_SUPPORT", **sold))
        self.assert_answers(user, {"state": "revoked", "status": "BLOCKED"}, "refunded")

    def test_the_app_stores_charges_give_the_plan_for_good_or_for_the_days_of_the_mapping(self):
        text = self.product("map", "appstore", "pass90", "--plan", "paid", "--days", "90")
        self.assertEqual(text, "appstore pass90 is mapped to plan paid for 90 days if it is bought once\n")
        user, holder, transaction = self.user(), self.user(), self.transaction()
        self.deliver(self.one_time_charge(user, transaction, "unlimited", type="Non-Consumable"))
        self.assert_answers(user, FOR_GOOD, "a non-consumable")
        self.deliver(self.one_time_charge(holder, self.transaction(), "pass90", type="Non-Renewing Subscription"))
        passed = {"plan": "paid", "state": "active", "expires": IN_90_DAYS, "renews": None, "status": "ALLOWED"}
        self.assert_answers(holder, passed, "a pass")
        self.deliver(self.one_time_charge(None, transaction, "unlimited", "REFUND", NEXT_SECOND, revocationDate=LATER))
        self.assert_answers(user, {"state": "revoked", "status": "BLOCKED"}, "refunded")

    def test_days_are_listed_and_checked(self):
        self.product("map", "appstore", "day_pass", "--plan", "paid", "--days", "1")
        rows = [json.loads(line) for line in self.product("list", "--json").splitlines()]
        self.assertEqual([row["days"] for row in rows if row["product"] == "day_pass"], [1])
        self.product("map", "appstore", "day_pass", "--plan", "paid")
        rows = [json.loads(line) for line in self.product("list", "--json").splitlines()]
        self.assertEqual([row["days"] for row in rows if row["product"] == "day_pass"], [None])
        for flags, message in (
            (("day_pass", "--plan", "paid", "--days", "0"), "1 to 36500"), (("day_pass", "--messages", "5", "--days", "9"), "need --plan"),
            (("--entitlement", "e", "--plan", "paid", "--days", "9"), "not for an entitlement"),
        ):  # fmt: skip
            self.assertIn(message, self.product("map", "appstore", *flags, status=64))
        for call in ("'appstore', 'p', 'paid', p_days => 0", "'appstore', 'p', null, p_messages => 1, p_days => 1"):
            with self.assertRaisesRegex(SQLError, "p_days"):
                self.psql.run(f"select headroom.map_product({call})")

    def test_an_entitlement_of_a_store_that_names_none_is_refused_with_what_to_use(self):
        for source in ("appstore", "stripe", "chargebee"):
            message = self.product("map", source, "--entitlement", "premium", "--plan", "paid", status=64)
            self.assertIn(f"events of {source} name no entitlement", message)
            self.assertIn("headroom product map", message)

    def limits(self, *events):
        return [(self.deliver(event)["outcome"], self.answers(self.buyer)[0].get("limit")) for event in events]

    def buy(self):
        self.buyer, _ = self.purchase()
        return self.buyer, self.transaction()

    def test_a_pack_of_checkout_is_granted_once_when_it_is_paid(self):
        user, payment = self.buy()
        paid = stripe_sale(LATER, user, payment, "pack")
        delayed = self.transaction()
        succeeded = stripe_sale(LATER, user, delayed, "pack", kind="async_payment_succeeded")
        self.assertEqual(
            self.limits(
                paid, paid, stripe_sale(LATER, user, payment, "pack"), stripe_sale(LATER, user, delayed, "pack", "unpaid"),
                succeeded, stripe_sale(LATER, user, self.transaction()),
            ),
            [("applied", "850"), ("duplicate", "850"), ("applied", "850"), ("ignored", "850"), ("applied", "900"), ("ignored", "900")],
        )  # fmt: skip

    def test_a_refund_of_a_pack_of_checkout_takes_it_back_and_one_of_something_else_does_nothing(self):
        user, payment = self.buy()
        other = stripe_refund(NEXT_SECOND, self.transaction(), invoice=None, payment_intent="pi_of_something_else")
        refund = stripe_refund(NEXT_SECOND, payment, invoice=None, payment_intent="pi_" + payment)
        self.assertEqual(
            self.limits(stripe_sale(LATER, user, payment, "pack"), other, refund),
            [("applied", "850"), ("ignored", "850"), ("applied", "800")],
        )

    def test_a_pack_with_an_invoice_is_granted_once_whichever_comes_first(self):
        for newest_first in (False, True):
            user, payment = self.buy()
            invoice = stripe_manual_invoice(LATER, payment, "storage", "pack")
            session = stripe_sale(LATER, user, payment, "pack", invoice="in_" + payment)
            session["api_version"] = "2026-02-25.clover"
            events = [invoice, session] if newest_first else [session, invoice]
            limits = [limit for _, limit in self.limits(*events)]
            self.assertEqual(limits[-1], "850", newest_first)

    def test_an_invoice_says_what_a_session_without_a_product_has_sold(self):
        user, payment = self.buy()
        self.assertEqual(
            self.limits(stripe_sale(LATER, user, payment), stripe_manual_invoice(LATER, payment, "pack")),
            [("ignored", "800"), ("applied", "850")],
        )
        user, payment = self.buy()
        self.assertEqual(
            self.limits(stripe_sale(LATER, user, payment), stripe_manual_invoice(LATER, payment, "pack", "storage", "pack"))[-1],
            ("applied", "900"),
        )

    def test_what_is_not_mapped_is_listed_with_all_its_names_and_applied_when_one_is(self):
        user, payment = self.buy()
        self.deliver(stripe_sale(PURCHASE, user, payment))
        first, second = ("price_" + self.transaction() for _ in range(2))
        answer = self.deliver(stripe_manual_invoice(LATER, payment, first, second))
        self.assertEqual(answer["outcome"], "failed")
        self.assertIn(f"'{first}', '{second}'", answer["problem"])
        self.assertIn("1 kept event failed", self.product("map", "stripe", first, "--messages", "20"))
        command("events", "replay", "--failed", database_url=self.database_url)
        self.assert_answers(user, {"limit": "820"}, "replayed")

    def test_a_subscription_without_a_mapped_item_names_them_all(self):
        answer = self.deliver(
            stripe_subscription("created", "active", PURCHASE, self.user(), self.transaction(), (PURCHASE, END), ("storage", "calls"))
        )
        self.assertEqual(answer["outcome"], "failed")
        self.assertIn("none of the products 'storage', 'calls' of stripe is mapped", answer["problem"])
