"""Stripe's webhook: signatures, the user of a subscription, and the stored fields. The effects of events are in
support/histories.py."""

import time

from support.service import command, succeed
from support.stores import (
    STRIPE_SECRET,
    compact,
    stripe_checkout,
    stripe_invoice,
    stripe_refund,
    stripe_signature,
    stripe_subscription,
)  # fmt: skip
from support.webhooks import END, PURCHASE, Webhooks

LATER = "2026-03-10T12:00:00Z"
PERIOD = (PURCHASE, END)


class Stripe(Webhooks):
    CLOCK = LATER
    MORE_FLAGS = ("--stripe-signature-window-seconds", "600")

    def created(self, user=None, transaction=None, **fields):
        transaction = transaction or self.transaction()
        return stripe_subscription("created", "active", PURCHASE, user, transaction, PERIOD, **fields)

    def stored(self):
        return self.psql.number("select count(*) from headroom.billing_events where source = 'stripe'")

    def send(self, body, signature, service=None):
        headers = {} if signature is None else {"Stripe-Signature": signature}
        answer = (service or self.service).http("POST", "/webhooks/stripe", body, headers)
        return answer.status, answer.json

    def test_a_request_without_a_good_signature_is_refused_before_it_is_read(self):
        body, now, before = compact(self.created(self.user())), time.time(), self.stored()
        good = stripe_signature(body)
        for signature, text in [
            (None, "Stripe-Signature is missing"), ("", "form"), ("v1=00", "form"), (good.split(",")[0], "form"),
            (good.replace("t=", "t=1"), "belong"), (stripe_signature(body, "whsec_another"), "belong"),
            (stripe_signature(body + b" "), "belong"), (stripe_signature(body, scheme="v0"), "form"),
            (stripe_signature(body, at=now - 1200), "600 seconds"), (stripe_signature(body, at=now + 1200), "600 seconds"),
        ]:  # fmt: skip
            with self.subTest(signature=signature and signature[:40]):
                status, answer = self.send(body, signature)
                self.assertEqual(status, 401, answer)
                self.assertIn(text, answer["detail"])
                self.assertNotIn("whsec", str(answer))
        for unread in (b"not JSON", b"[" * 50_000, b""):
            self.assertEqual(self.send(unread, good)[0], 401)
            status, answer = self.send(unread, stripe_signature(unread))
            self.assertIn(status, (400, 413), answer)
        self.assertEqual(self.stored(), before)
        self.assertEqual(self.send(body, stripe_signature(body, at=now - 500))[0], 200)

    def test_a_secret_is_rolled_without_an_event_refused(self):
        service = self.serve(env={"HEADROOM_STRIPE_SIGNING_SECRET": f"whsec_new,{STRIPE_SECRET}"})
        for secrets in (("whsec_new",), (STRIPE_SECRET,), ("whsec_new", STRIPE_SECRET), ("whsec_other", "whsec_new")):
            body = compact(self.created(self.user()))
            status, answer = self.send(body, stripe_signature(body, *secrets), service)
            self.assertEqual((status, answer["outcome"]), (200, "applied"))
        self.assertEqual(self.send(body, stripe_signature(body, "whsec_other"), service)[0], 401)
        self.assertNotIn("whsec", service.log())

    def test_events_of_the_test_mode_are_refused_in_production(self):
        event = {**self.created(self.user()), "livemode": False}
        body, before = compact(event), self.stored()
        status, answer = self.send(body, stripe_signature(body))
        self.assertEqual(status, 403)
        self.assertIn("store-environment", answer["detail"])
        self.assertEqual(self.stored(), before)
        environment = {"HEADROOM_STRIPE_SIGNING_SECRET": STRIPE_SECRET}
        service = self.serve("--store-environment", "sandbox", env=environment)
        self.assertEqual(self.send(body, stripe_signature(body), service)[0], 200)

    def test_a_subscription_that_names_nobody_waits_for_the_checkout_that_does(self):
        user, transaction = self.user(), self.transaction()
        self.assertEqual(self.deliver(self.created(None, transaction))["outcome"], "failed", "its user is unknown")
        self.deliver(stripe_checkout(PURCHASE, user, transaction))
        self.assert_answers(user, {"plan": "paid", "state": "active", "status": "ALLOWED"}, "since the checkout")
        cancelled = stripe_subscription("updated", "active", LATER, None, transaction, PERIOD, at_end=True)
        self.assertEqual(self.deliver(cancelled)["outcome"], "applied")
        self.assert_answers(user, {"state": "cancelled"}, "what names the customer alone")

    def test_a_refund_ends_access_unless_the_setting_says_otherwise(self):
        service = self.serve("--stripe-refund-revokes", "off", env={"HEADROOM_STRIPE_SIGNING_SECRET": STRIPE_SECRET})
        for port, status in ((self.service, "BLOCKED"), (service, "ALLOWED")):
            user, transaction = self.user(), self.transaction()
            self.deliver(self.created(user, transaction))
            body = compact(stripe_refund(LATER, transaction))
            self.assertEqual(self.send(body, stripe_signature(body), port)[0], 200)
            self.assert_answers(user, {"status": status}, f"a refund, {status}")

    def test_a_refund_that_does_not_tell_its_subscription_is_kept_and_listed(self):
        answer = self.deliver(stripe_refund(LATER, self.transaction(), invoice="in_1"))
        self.assertEqual(answer["outcome"], "failed")
        self.assertIn("cancel that in Stripe", answer["problem"])
        listed = command("events", "list", "--failed", database_url=self.database_url)
        self.assertIn("charge.refunded", listed.stdout)

    def test_nothing_personal_is_kept_or_logged_and_a_replay_gives_the_same(self):
        user, transaction = self.user(), self.transaction()
        events = [
            stripe_checkout(PURCHASE, user, transaction), self.created(None, transaction),
            stripe_invoice("payment_failed", LATER, transaction, PERIOD, next_attempt=END), stripe_refund(LATER, transaction),
        ]  # fmt: skip
        for event in events:
            self.deliver(event)
        stored = self.psql.run("select string_agg(n::text, ' ') from headroom.billing_events n where source = 'stripe'")[0][0]
        for text in ("@", "cus_", "amount_", "description"):
            self.assertNotIn(text, stored)
        for text in ("ann@", "cus_", transaction, STRIPE_SECRET):
            self.assertNotIn(text, self.service.log())
        tables = ("subscriptions", "customer_names", "message_purchases", "usage_transfers")
        rows = lambda: [self.psql.run(f"select t::text from headroom.{table} t order by 1") for table in tables]
        before = rows()
        for event in events:
            succeed("events", "replay", "stripe", event["id"], database_url=self.database_url)
        self.assertEqual(rows(), before)
