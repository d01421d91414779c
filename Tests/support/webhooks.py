"""The base class of webhook tests."""

import http.client
import json
import random

from .case import Case
from .stores import AUTHORIZATION, STRIPE_SECRET, AppStore, compact, revenuecat, stripe_signature
from .waiting import TIMEOUT_SECONDS
from .wire import Answer

PURCHASE, END = "2026-03-01T12:00:00Z", "2026-04-01T12:00:00Z"
"""The instants of the subscription in most histories."""
WEBHOOK_SETTINGS = {"HEADROOM_REVENUECAT_AUTHORIZATION": AUTHORIZATION}
"""The environment of a service that accepts RevenueCat's events."""


def post_event(service, event):
    """Posts a RevenueCat event to a service with `WEBHOOK_SETTINGS`; returns the answer."""
    answer = service.http("POST", "/webhooks/revenuecat", compact(event), {"Authorization": AUTHORIZATION})
    assert answer.status == 200, answer.text
    return answer.json


class Webhooks(Case):
    """A service that accepts every store's events, with mapped products."""

    CLOCK = PURCHASE
    FLAGS = None
    MORE_FLAGS = ()

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.app_store = AppStore()
        cls.service = cls.serve(
            *cls.app_store.flags, *cls.MORE_FLAGS, env={**WEBHOOK_SETTINGS, "HEADROOM_STRIPE_SIGNING_SECRET": STRIPE_SECRET}
        )
        cls.set_clock(cls.CLOCK)
        for source in ("revenuecat", "appstore", "stripe"):
            for product, plan, messages in (("premium", "'paid'", "null"), ("unlimited", "'pro'", "null"), ("pack", "null", "50")):
                cls.psql.run(f"select headroom.map_product('{source}', '{product}', {plan}, p_messages => {messages})")
        cls.connection = http.client.HTTPConnection("127.0.0.1", cls.service.http_port, timeout=TIMEOUT_SECONDS)
        cls.line = cls.service.connect()

    @classmethod
    def tearDownClass(cls):
        cls.connection.close()
        cls.line.close()
        super().tearDownClass()

    @classmethod
    def transaction(cls):
        return str(random.randrange(10**14, 10**15))

    def post(self, path, body, headers=None):
        """Posts a body; returns the status and the JSON of the answer."""
        data = body if isinstance(body, bytes) else compact(body)
        self.connection.request("POST", path, data, {"Content-Type": "application/json", **(headers or {})})
        response = self.connection.getresponse()
        text = response.read()
        return response.status, json.loads(text)

    def deliver(self, event):
        """Posts one event of any store; returns the answer."""
        if "signedPayload" in event:
            status, answer = self.post("/webhooks/appstore", event)
        elif event.get("object") == "event":
            body = compact(event)
            status, answer = self.post("/webhooks/stripe", body, {"Stripe-Signature": stripe_signature(body)})
        else:
            status, answer = self.post("/webhooks/revenuecat", event, {"Authorization": AUTHORIZATION})
        self.assertEqual(status, 200, answer)
        return answer

    def purchase(self, user=None, **fields):
        """A user with a new RevenueCat subscription, and its transaction."""
        user, transaction = user or self.user(), self.transaction()
        event = revenuecat(
            "INITIAL_PURCHASE", PURCHASE, user, transaction,
            **{"purchased_at_ms": PURCHASE, "expiration_at_ms": END, **fields},
        )  # fmt: skip
        self.assertEqual(self.deliver(event)["outcome"], "applied")
        return user, transaction

    def answers(self, user):
        """The answers to USAGE and CONSUME."""
        return [Answer(self.line.send_command(f"{verb} {user}")) for verb in ("USAGE", "CONSUME")]

    def assert_answers(self, user, expected, situation):
        """`expected` has fields of USAGE, and `status` and `reason` of CONSUME; None means absent."""
        usage, consume = self.answers(user)
        for name, value in expected.items():
            actual = consume.status if name == "status" else consume.get(name) if name == "reason" else usage.get(name)
            self.assertEqual(actual, value, f"{name}, {situation}: {usage.text} {consume.text}")
