"""Posts every event of each store over HTTP: in order, in any order, twice, and long after. The line protocol then has the
expected usage."""

import itertools
import random
import threading

from support.histories import REVENUECAT, STRIPE, app_store_histories
from support.stores import AUTHORIZATION, revenuecat
from support.webhooks import END, PURCHASE, Webhooks
from support.wire import Answer

LATE = "2026-07-01T12:00:00Z"
ORDERS_MAXIMUM = 12
"""Of each history."""


class Histories(Webhooks):
    CLOCK = PURCHASE

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.histories = {"revenuecat": REVENUECAT, "appstore": app_store_histories(cls.app_store), "stripe": STRIPE}

    def each(self, check):
        """Does it with every history of each store, each a subtest of its own."""
        for source, histories in self.histories.items():
            for history in histories:
                with self.subTest(source=source, history=history.name):
                    check(history)

    def events(self, history, user):
        """What the store posts, each with the instant at which it happened."""
        transaction = self.transaction()
        events = []
        for make in history.events:
            event = make(user, transaction)
            if "event" in event:
                name = event["event"].get("original_transaction_id", "")
                if name.startswith("{}"):
                    event["event"]["original_transaction_id"] = transaction + name[2:]
            events.append((make.at, event))
        return events

    def test_each_event_does_what_the_tables_say(self):
        self.each(self.deliver_in_order)

    def deliver_in_order(self, history):
        user = self.user()
        for at, event in self.events(history, user):
            self.set_clock(at)
            self.assertIn(self.deliver(event)["outcome"], ("applied", "ignored"))
        for at, expected in history.expectations:
            self.set_clock(at)
            self.assert_answers(user, expected, f"{history.name}, in order, at {at}")

    def test_every_order_and_any_repetition_ends_in_the_same(self):
        self.each(self.deliver_in_any_order)

    def deliver_in_any_order(self, history):
        orders = list(itertools.permutations(range(len(history.events))))
        if "pack" in history.name:
            # Messages that are bought are granted in the period that runs when the event arrives.
            orders = [order for order in orders if order == tuple(sorted(order))]
        random.shuffle(orders)
        # The clock is that of the last event: no event arrives before it happened. It is set once for all orders, each with a user
        # of its own, because each change of it has every statement planned again.
        self.set_clock(max(make.at for make in history.events))
        delivered = [self.deliver_in_order_of(history, order) for order in orders[:ORDERS_MAXIMUM]]
        for at, expected in history.expectations:
            self.set_clock(at)
            for user, deliveries in delivered:
                self.assert_answers(user, expected, f"{history.name}, order {deliveries}, at {at}")

    def deliver_in_order_of(self, history, order):
        """Delivers every event to a new user, and some twice; returns the user and what was delivered."""
        user = self.user()
        events = self.events(history, user)
        deliveries = [*order, *random.choices(order, k=2)]
        for place in deliveries:
            outcome = self.deliver(events[place][1])["outcome"]
            self.assertIn(outcome, ("applied", "ignored", "waiting", "failed", "duplicate"))
        outcomes = {self.deliver(event)["outcome"] for _, event in events}
        self.assertEqual(outcomes, {"duplicate"}, f"{history.name}, {deliveries}: each is kept and counts")
        return user, deliveries

    def test_events_that_come_long_after_they_happened_end_in_the_same(self):
        self.each(self.deliver_late)

    def deliver_late(self, history):
        in_time, late = self.user(), self.user()
        for at, event in self.events(history, in_time):
            self.set_clock(at)
            self.deliver(event)
        self.set_clock(LATE)
        for _, event in self.events(history, late):
            self.assertIn(self.deliver(event)["outcome"], ("applied", "ignored"))
        expected, found = ([answer.fields for answer in self.answers(user)] for user in (in_time, late))
        # Messages that are bought are granted in the period that runs when the event arrives.
        for fields in (*expected, *found):
            for name in ("user", "limit", "accessible") if "pack" in history.name else ("user",):
                fields.pop(name, None)
        self.assertEqual(found, expected, history.name)
        self.assertIn(found[1]["reason"], ("expired", "billing_retry", "revoked", "trial_ended"), history.name)

    def test_events_of_many_users_at_once_beside_messages_end_in_the_same(self):
        history = next(h for h in self.histories["revenuecat"] if h.name == "a billing issue that is resolved")
        self.set_clock(history.expectations[0][0])
        users = [self.user() for _ in range(12)]
        deliveries = [event for user in users for _, event in self.events(history, user)] * 2
        random.shuffle(deliveries)
        problems, allowed, done = [], dict.fromkeys(users, 0), threading.Event()

        def deliver(events):
            for event in events:
                answer = self.service.http("POST", "/webhooks/revenuecat", event, {"Authorization": AUTHORIZATION})
                if answer.status != 200:
                    problems.append(answer)

        def consume():
            with self.service.connect() as connection:
                while not done.is_set():
                    for user in users:
                        allowed[user] += connection.send_command(f"CONSUME {user}").startswith("+ALLOWED")

        consumer = threading.Thread(target=consume)
        senders = [threading.Thread(target=deliver, args=(deliveries[place::4],)) for place in range(4)]
        for thread in (consumer, *senders):
            thread.start()
        for thread in senders:
            thread.join()
        done.set()
        consumer.join()
        self.assertEqual(problems, [])
        for user in users:
            self.assertEqual(self.count(user), allowed[user], "each message that was allowed is counted once")
            self.assert_answers(user, history.expectations[0][1], history.name)


class Access(Webhooks):
    def test_access_changes_with_the_very_next_consume(self):
        self.set_clock(PURCHASE)
        user, transaction = self.purchase()
        for _ in range(3):
            for kind, fields, status in (
                ("CANCELLATION", {"cancel_reason": "CUSTOMER_SUPPORT"}, "BLOCKED"), ("REFUND_REVERSED", {}, "ALLOWED"),
            ):  # fmt: skip
                self.set_clock(PURCHASE)
                event = revenuecat(kind, self.later(), user, transaction, expiration_at_ms=END, **fields)
                self.set_clock(self.time)
                answer = self.deliver(event)
                self.assertEqual((answer["outcome"], answer["access"]), ("applied", status == "ALLOWED"))
                self.assertEqual(Answer(self.line.send_command(f"CONSUME {user}")).status, status)

    minute = 0

    def later(self):
        self.minute += 1
        self.time = f"2026-03-02T12:{self.minute:02}:00Z"
        return self.time

    def test_a_transfer_takes_subscription_and_usage_along(self):
        self.set_clock(PURCHASE)
        user, transaction = self.purchase()
        other = self.user()
        self.assertIn("+ALLOWED ", self.line.send_command(f"CONSUME {user} 10"))
        transfer = revenuecat("TRANSFER", "2026-03-02T12:00:00Z", ..., transaction, transferred_from=[user], transferred_to=[other],
                              **dict.fromkeys(("original_app_user_id", "aliases", "environment", "product_id", "transaction_id",
                                               "original_transaction_id", "period_type"), ...))  # fmt: skip
        self.set_clock("2026-03-02T12:00:00Z")
        self.assertEqual(self.deliver(transfer)["outcome"], "applied")
        self.assert_answers(other, {"plan": "paid", "state": "active", "used": "10", "status": "ALLOWED"}, "who has it now")
        self.assertEqual(self.answers(user)[1].get("plan"), "trial", "who had it before")
        # An earlier event that arrives only now applies to the subscription's new owner.
        self.deliver(revenuecat(
            "CANCELLATION", "2026-03-01T15:00:00Z", user, transaction, cancel_reason="UNSUBSCRIBE", expiration_at_ms=END
        ))  # fmt: skip
        self.assert_answers(other, {"state": "cancelled"}, "an event from before the transfer")

    @staticmethod
    def transfer(giver, receiver, at):
        return revenuecat("TRANSFER", at, ..., "1", transferred_from=[giver], transferred_to=[receiver],
                          original_app_user_id=..., aliases=..., environment=...)  # fmt: skip

    def test_a_late_purchase_of_the_receiver_takes_back_what_a_transfer_has_added(self):
        self.psql.run(
            "insert into headroom.plan_limits (plan, kind, name, window_messages, window_seconds)"
            " values ('paid', 'model', 'large', 9, 10800)"
        )
        self.set_clock("2026-03-01T13:00:00Z")
        (giver, _), receiver = self.purchase(), self.user()
        self.assertIn("+ALLOWED ", self.line.send_command(f"CONSUME {giver} 3 model=large"))
        self.deliver(self.transfer(giver, receiver, "2026-03-01T12:30:00Z"))
        consume = f"CONSUME {receiver} model=large"
        self.assertEqual(Answer(self.line.send_command(consume))["model_used"], "4")
        self.purchase(receiver)
        self.assertEqual(Answer(self.line.send_command(consume))["model_used"], "2")

    def test_a_gift_blocks_nobody_and_a_transfer_back_takes_nothing(self):
        self.set_clock(PURCHASE)
        (attacker, given), (payer, bought) = self.purchase(), self.purchase()
        for user, count in ((attacker, 800), (payer, 10)):
            self.assertIn("+ALLOWED ", self.line.send_command(f"CONSUME {user} {count}"))
        self.set_clock("2026-03-01T13:00:00Z")
        self.deliver(self.transfer(attacker, payer, "2026-03-01T12:30:00Z"))
        self.assertEqual(Answer(self.line.send_command(f"CONSUME {payer}")).used, 11)
        self.deliver(self.transfer(payer, attacker, "2026-03-01T13:00:00Z"))
        owners = self.psql.run(
            f"select user_id from headroom.subscriptions where original_transaction_id in ('{given}', '{bought}')"
            f" order by original_transaction_id = '{bought}'"
        )
        self.assertEqual([row[0] for row in owners], [attacker, payer])
        self.assertEqual(Answer(self.line.send_command(f"CONSUME {payer}")).used, 12)
        self.assertEqual(Answer(self.line.send_command(f"CONSUME {attacker}"))["reason"], "limit_reached")
