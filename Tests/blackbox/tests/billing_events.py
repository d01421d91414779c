"""Billing events in Headroom's own format, over HTTP."""

import json
import re
import uuid
from pathlib import Path

from support.case import Case
from support.reference import documented
from support.service import command
from support.waiting import wait_until
from support.wire import Answer

START, NOW = "2026-11-05T12:00:00Z", "2026-11-05T14:00:00Z"
PAGE = Path(__file__).resolve().parents[3] / "docs" / "billing-events.md"


class BillingEvents(Case):
    CLOCK = NOW

    def send(self, headers=None, **event):
        """Posts an event, by default a purchase; returns status and body of the answer."""
        event = {"source": "chargebee", "id": str(uuid.uuid4()), "at": START, "kind": "purchased", **event}
        answer = self.service.http("POST", "/v1/billing-events", json.dumps(event), headers=headers)
        return answer.status, json.loads(answer.body)

    def apply(self, **event):
        status, answer = self.send(**event)
        self.assertEqual(status, 200, answer)
        return answer

    def usage(self, user):
        return Answer(self.service.send_command(f"USAGE {user}")).fields

    def test_a_subscription_goes_from_its_purchase_to_its_refund(self):
        user, transaction = self.user(), str(uuid.uuid4())
        bought = self.apply(user=user, transaction=transaction, plan="paid", expires="2026-12-05T12:00:00Z")
        self.assertEqual((bought["outcome"], bought["plan"], bought["state"], bought["access"]), ("applied", "paid", "active", True))
        self.assertEqual(Answer(self.service.send_command(f"CONSUME {user} 3")).fields["used"], "3")
        renewed = self.apply(kind="renewed", at="2026-11-05T12:30:00Z", transaction=transaction, expires="2027-01-05T12:00:00Z")
        self.assertEqual((renewed["user"], renewed["expires"]), (user, "2027-01-05T12:00:00Z"))
        cancelled = self.apply(kind="cancelled", at="2026-11-05T12:40:00Z", transaction=transaction)
        self.assertEqual(cancelled["state"], "cancelled")
        revoked = self.apply(kind="revoked", at="2026-11-05T12:50:00Z", transaction=transaction)
        self.assertEqual((revoked["access"], revoked["reason"]), (False, "revoked"))
        self.assertEqual(Answer(self.service.send_command(f"CONSUME {user}")).fields["reason"], "revoked")

    def test_clients_that_read_the_table_see_the_new_period_between_the_purchase_and_the_first_message(self):
        bought, declared = self.user(), self.user()
        for user in (bought, declared):
            self.service.send_command(f"CONSUME {user} 100")
        transaction = str(uuid.uuid4())
        self.apply(user=bought, transaction=transaction, plan="paid", expires="2026-12-05T12:00:00Z")
        self.service.send_command(f"SETPLAN {declared} paid")
        rows = "json_agg(json_build_array(billing_period, message_count, \"limit\") order by billing_period)"
        for user in (bought, declared):
            found = json.loads(self.psql.value(f"select {rows} from message_usage where user_id = '{user}'"))
            self.assertEqual(found, [["2026-11", 0, 800], ["trial", 100, 100]])
            self.assertEqual(Answer(self.service.send_command(f"CONSUME {user}")).fields["used"], "1")
        # A refund before the first message deletes the period's row.
        refunded, transaction = self.user(), str(uuid.uuid4())
        self.apply(user=refunded, transaction=transaction, plan="paid", expires="2026-12-05T12:00:00Z")
        self.apply(kind="revoked", at="2026-11-05T12:50:00Z", transaction=transaction)
        self.assertEqual(self.psql.number(f"select count(*) from message_usage where user_id = '{refunded}'"), 0)

    def test_usage_says_when_a_subscription_renews_until_it_is_cancelled(self):
        user, transaction = self.user(), str(uuid.uuid4())
        first, second, third = ("2026-12-05T12:00:00Z", "2027-01-05T12:00:00Z", "2027-02-05T12:00:00Z")
        self.apply(user=user, transaction=transaction, plan="paid", expires=first)
        self.assert_renews(user, first)
        self.apply(kind="renewed", at="2026-11-05T12:10:00Z", transaction=transaction, expires=second)
        self.assert_renews(user, second)
        self.assertNotIn("next_plan", self.usage(user))
        self.apply(kind="product_changed", at="2026-11-05T12:15:00Z", transaction=transaction, next_plan="pro")
        for fields in (self.usage(user), self.service.http("GET", f"/v1/usage/{user}").json):
            self.assertEqual(fields["next_plan"], "pro", fields)
        self.apply(kind="cancelled", at="2026-11-05T12:20:00Z", transaction=transaction)
        self.assert_renews(user, None)
        self.assertNotIn("next_plan", self.usage(user))
        self.assertEqual(self.usage(user)["expires"], second)
        self.apply(kind="renewed", at="2026-11-05T12:30:00Z", transaction=transaction, expires=third)
        self.assert_renews(user, third)
        self.service.send_command(f"SETPLAN {user} paid expires={third}")
        self.assert_renews(user, None)

    def test_usage_has_the_price_of_the_newest_renewal_and_the_state_s_label(self):
        user, transaction = self.user(), str(uuid.uuid4())
        about = {"user": user, "transaction": transaction, "plan": "paid"}
        self.apply(**about, expires="2026-12-05T12:00:00Z", price="0.99", currency="USD")
        late = {"kind": "renewed", "at": "2026-11-05T12:20:00Z", "expires": "2027-02-05T12:00:00Z", "price": 1200, "currency": "JPY"}
        self.apply(**about, **late)
        early = {"kind": "renewed", "at": "2026-11-05T12:10:00Z", "expires": "2027-01-05T12:00:00Z", "price": 9.99, "currency": "EUR"}
        self.apply(**about, **early)
        kinds = (("uncancelled", "Active"), ("cancelled", "Cancelled"), ("grace_period", "Billing issue"), ("revoked", "Refunded"))
        for minute, (kind, label) in enumerate(kinds):
            self.apply(kind=kind, at=f"2026-11-05T13:0{minute}:00Z", transaction=transaction)
            for fields in (self.usage(user), self.service.http("GET", f"/v1/usage/{user}").json):
                self.assertEqual((fields["price"], fields["currency"], fields["state_label"]), ("1200", "JPY", label), fields)
                self.assertEqual("steps" in fields, label == "Billing issue", fields)
                self.assertNotIn("manage", fields)
        row = self.psql.run(f"select price, currency, state from increment_and_check_usage('{user}')")[0]
        self.assertEqual(list(row), ["1200", "JPY", "revoked"])
        for name in ("price", "currency", "state_label", "manage", "steps"):
            self.assertNotIn(name, Answer(self.service.send_command(f"CONSUME {user}")).fields)

    def assert_renews(self, user, expected):
        """Checks USAGE alone, in a batch with messages and holds of the same user, and over HTTP."""
        with self.service.connect() as connection:
            connection.send(f"CONSUME {user}\nUSAGE {user}\nRESERVE {user} key={uuid.uuid4()}\nUSAGE {user}\n")
            counted, after, held, beside = (Answer(text) for text in connection.read_lines(4))
        self.assertEqual((counted.status, held.status), ("ALLOWED", "HELD"))
        for answer in (counted, held):
            self.assertNotIn("renews", answer)
        over_http = self.service.http("GET", f"/v1/usage/{user}").json
        for fields in (self.usage(user), after.fields, beside.fields, over_http):
            self.assertEqual(fields.get("renews"), expected, fields)

    def test_an_event_is_applied_once_and_in_the_order_in_which_events_happened(self):
        user, transaction, name = self.user(), str(uuid.uuid4()), str(uuid.uuid4())
        late = dict(kind="cancelled", at="2026-11-05T13:00:00Z", transaction=transaction)
        first = self.apply(**late)
        self.assertEqual((first["outcome"], "no user is known" in first["problem"]), ("failed", True))
        bought = dict(id=name, user=user, transaction=transaction, plan="paid", expires="2026-12-05T12:00:00Z")
        self.assertEqual(self.apply(**bought)["state"], "cancelled", "the late event is applied with it")
        self.assertEqual(self.apply(**bought)["outcome"], "duplicate")
        self.assertEqual(self.usage(user)["state"], "cancelled")

    def test_a_trial_runs_from_its_start_to_its_own_end(self):
        user = self.user()
        started, expires = "2026-11-05T12:00:00Z", "2026-11-12T12:00:00Z"
        trial = self.apply(user=user, transaction=str(uuid.uuid4()), plan="trial", started=started, expires=expires)
        self.assertEqual((trial["state"], trial["expires"]), ("trial", expires))
        fields = self.usage(user)
        self.assertEqual((fields["day"], fields["days"], fields["expires"]), ("1", "7", expires))

    def test_a_malformed_event_is_refused_with_its_field_and_leaves_nothing(self):
        before = self.psql.value("select count(*) from headroom.billing_events")
        for changes, name in (
            ({"source": "stripe"}, "webhook"), ({"at": "soon"}, "at"), ({"kind": "bought"}, "kind"),
            ({"user": "ann@example.com"}, "user"), ({"more": 1}, "more"), ({"transaction": None}, "transaction"),
        ):  # fmt: skip
            status, problem = self.send(**{"transaction": "t", "plan": "paid", **changes})
            self.assertEqual((status, problem["code"]), (400, "BADREQUEST"), changes)
            self.assertIn(name, problem["detail"])
            self.assertNotIn("example.com", problem["detail"])
        self.assertEqual(self.psql.value("select count(*) from headroom.billing_events"), before)

    def test_a_plan_that_does_not_exist_fails_and_is_applied_when_sent_right(self):
        user, name = self.user(), str(uuid.uuid4())
        event = dict(id=name, user=user, transaction=str(uuid.uuid4()), expires="2026-12-05T12:00:00Z")
        self.assertIn("there is no plan 'gold'", self.apply(plan="gold", **event)["problem"])
        self.assertEqual(self.apply(plan="pro", **event)["outcome"], "applied")

    def test_the_page_names_every_kind_and_field(self):
        page = PAGE.read_text()
        described = json.loads((PAGE.parent / "openapi.json").read_text())["components"]["schemas"]["BillingEvent"]
        kinds = set(described["properties"]["kind"]["enum"])
        tables = "".join(line for line in page.splitlines(keepends=True) if line.startswith("| `"))
        self.assertEqual(set(described["properties"]) - set(re.findall(r"`([a-z_]+)`", tables)), set())
        # Only stores send these.
        self.assertEqual(kinds, set(documented("kind")) - {"temporary", "merged", "linked"})


class BillingTokens(Case):
    FLAGS = ("--authentication", "required")

    def test_only_operators_send_billing_events(self):
        event = json.dumps({"source": "chargebee", "id": "e", "at": START, "kind": "revoked", "transaction": "t"})
        self.assertEqual(self.service.http("POST", "/v1/billing-events", event).status, 401)
        for scope, status in (("dashboard", 403), ("chat", 403), ("operator", 200)):
            token = command("token", "create", scope, "--scope", scope, database_url=self.database_url).stdout.strip()
            headers = {"Authorization": f"Bearer {token}"}
            wait_until(lambda: self.service.http("GET", "/metrics", headers=headers).status != 401, "the token is known")
            self.assertEqual(self.service.http("POST", "/v1/billing-events", event, headers=headers).status, status, scope)
