"""Invalid requests to the webhooks, and requests that the service cannot process now: each gets its status and a body that says
what to do, and changes nothing. The next valid event is applied."""

import base64
import json
import os
import random
import threading
import time

from support import processes
from support.case import Case
from support.service import Service, command, succeed
from support.stores import (
    AUTHORIZATION,
    BUNDLE,
    SIGNING_SECRET,
    AppStore,
    compact,
    milliseconds,
    revenuecat,
    revenuecat_signature,
)  # fmt: skip
from support.waiting import TIMEOUT_SECONDS, wait_until
from support.webhooks import END, PURCHASE, Webhooks
from support.wire import Answer

LATER = "2026-03-10T12:00:00Z"
DEEP = b"[" * 50_000


class Requests(Webhooks):
    CLOCK = LATER

    def stored(self):
        return self.psql.number("select count(*) from headroom.billing_events")

    def event(self, **changes):
        body = revenuecat("RENEWAL", PURCHASE, self.user(), self.transaction(), expiration_at_ms=END)
        body["event"].update(changes)
        return body

    def assert_refused(self, answer, status, *texts):
        found, body = answer
        self.assertEqual(found, status, body)
        self.assertEqual(body["status"], status)
        for name in ("type", "title", "detail", "code"):
            self.assertIn(name, body)
        for text in texts:
            self.assertIn(text, body["detail"])
        self.assertNotIn("s3cret", str(body))

    def assert_good_events_work(self):
        user, _ = self.purchase()
        self.assertEqual(Answer(self.line.send_command(f"CONSUME {user}")).status, "ALLOWED")

    def test_bad_bodies_of_revenuecat_get_the_reason_and_change_nothing(self):
        good = compact(self.event())
        before, notification = self.stored(), 0
        for body, status, text in [
            (b"", 400, "not JSON"), (b"s3cret", 400, "not JSON"), (good[:-1], 400, "not JSON"), (good + b"x", 400, "not JSON"),
            (b"\xff\xfe" + good, 415, "UTF-8"), (b"\x00" * 100, 415, "UTF-8"), (b"null", 400, "body"), (b"[]", 400, "object"),
            (b"{}", 400, "event is missing"), (compact({"event": []}), 400, "event must be a JSON object"),
            (DEEP, 413, "deeper"), (b'{"a":' * 20_000, 413, "deeper"),
            (b"[" + b"1," * 100_000 + b"1]", 413, "values"),
            *((compact(self.event(**{name: value})), 400, "event." + name) for name, value in [
                ("id", None), ("id", 7), ("id", ""), ("id", "x" * 256), ("id", "a\nb"), ("type", None), ("type", ["RENEWAL"]),
                ("event_timestamp_ms", None), ("event_timestamp_ms", "s3cret"),
                ("event_timestamp_ms", 1.5), ("event_timestamp_ms", -1), ("event_timestamp_ms", 10**18),
                ("expiration_at_ms", True), ("expiration_at_ms", "2026-04-01"), ("app_user_id", {"s3cret": 1}),
                ("aliases", "s3cret"), ("aliases", [1]), ("is_trial_conversion", "yes"), ("product_id", 1),
            ]),
        ]:  # fmt: skip
            with self.subTest(body=body[:80], status=status, text=text):
                answer = self.post("/webhooks/revenuecat", body, {"Authorization": AUTHORIZATION})
                self.assert_refused(answer, status, text)
                self.assert_good_events_work()
                notification += 1
        self.assertEqual(self.stored(), before + notification, "the good ones alone are kept")

    def test_a_body_is_read_as_json_whatever_it_is_called(self):
        for kind in ("application/json; charset=utf-8", "text/plain", "application/octet-stream"):
            status, _ = self.post("/webhooks/revenuecat", self.event(), {"Authorization": AUTHORIZATION, "Content-Type": kind})
            self.assertEqual(status, 200)

    def test_a_body_that_is_too_large_is_refused_before_it_is_read(self):
        service = self.serve("--http-body-bytes-maximum", "4096", env={"HEADROOM_REVENUECAT_AUTHORIZATION": AUTHORIZATION})
        event = self.event(subscriber_attributes={"note": "x" * 5_000})
        answer = service.http("POST", "/webhooks/revenuecat", event, {"Authorization": AUTHORIZATION})
        self.assert_refused((answer.status, answer.json), 413, "4096 bytes")
        answer = service.http("POST", "/webhooks/revenuecat", self.event(), {"Authorization": AUTHORIZATION})
        self.assertEqual(answer.status, 200)

    def test_a_sender_that_is_not_revenuecat_is_refused_and_learns_nothing(self):
        event = compact(self.event())
        before = self.stored()
        for wrong in (None, "", "Bearer", "Bearer ", AUTHORIZATION + "x", AUTHORIZATION[:-1], AUTHORIZATION.lower(), "Basic YTpi",
                      AUTHORIZATION + ", " + AUTHORIZATION, "x" * 8_000):  # fmt: skip
            with self.subTest(authorization=wrong and wrong[:40]):
                answer = self.post("/webhooks/revenuecat", event, {} if wrong is None else {"Authorization": wrong})
                self.assert_refused(answer, 401, "Authorization")
                self.assertNotIn(AUTHORIZATION[:12], answer[1]["detail"])
        self.assertEqual(self.stored(), before)
        self.assert_good_events_work()

    def test_bad_notifications_of_the_app_store_get_the_reason_and_change_nothing(self):
        store, other = self.app_store, AppStore()
        notification = lambda by, **fields: by.notification(
            "DID_RENEW", None, PURCHASE, self.user(), self.transaction(), expiresDate=END, **fields
        )
        good = notification(store)["signedPayload"]
        header, payload, signature = good.split(".")
        renewal = {"notificationType": "TEST", "notificationUUID": "x", "signedDate": milliseconds(PURCHASE)}
        forged = base64.urlsafe_b64encode(compact({**renewal, "notificationType": "DID_RENEW"})).rstrip(b"=").decode()
        mixed = store.sign({**renewal, "data": {"bundleId": BUNDLE, "signedTransactionInfo": other.sign(renewal)}})
        with_renewal = lambda **how: store.sign(renewal, **how)
        before = self.stored()
        for signed, status, text in [
            (None, 400, "signedPayload"), (7, 400, "signedPayload"), ("", 400, "JWS"), ("s3cret", 400, "JWS"), ("a.b.c", 400, "header"),
            ("....", 400, "JWS"), ("." * 100_000, 400, "JWS"), ("A" * 200_000, 400, "JWS"), (f"{header}.{payload}", 400, "JWS"),
            (f"{header}.!!.{signature}", 401, "signature"), (f"{header}.{payload}.!!", 400, "base64url"),
            (f"{header}.{payload}.", 401, "signature"),
            (f"{header}.{payload}.{signature[:-8]}", 401, "signature"), (f"{header}.{forged}.{signature}", 401, "signature"),
            (notification(other)["signedPayload"], 401, "appstore-root-certificate"), (mixed, 401, "data.signedTransactionInfo"),
            (with_renewal(algorithm="none"), 401, "ES256"), (with_renewal(algorithm="HS256"), 401, "ES256"),
            (with_renewal(chain=store.chain[:2]), 401, "exactly 3"), (with_renewal(chain=[*store.chain, store.root]), 401, "exactly 3"),
            (with_renewal(chain=store.chain[::-1]), 401, "root"), (store.sign(DEEP[:10_000]), 413, "deeper"),
            (store.sign("{}".encode("utf-16")), 415, "UTF-8"),
            (store.sign(b"{}"), 400, "signedDate"), (store.sign({"signedDate": milliseconds(PURCHASE)}), 400, "notificationType"),
            (store.sign({**renewal, "signedDate": "s3cret"}), 400, "signedDate"),
            (notification(store, bundle="com.example.other")["signedPayload"], 403, "appstore-bundle-id"),
            (notification(store, environment="Sandbox")["signedPayload"], 403, "store-environment"),
        ]:  # fmt: skip
            with self.subTest(signed=str(signed)[:60], status=status, text=text):
                answer = self.post("/webhooks/appstore", {} if signed is None else {"signedPayload": signed})
                self.assert_refused(answer, status, text)
        self.assertEqual(self.stored(), before)
        self.assertEqual(self.deliver({"signedPayload": good})["outcome"], "applied")

    def test_events_of_a_sandbox_are_refused_and_a_test_from_the_dashboard_is_not(self):
        before = self.stored()
        answer = self.post("/webhooks/revenuecat", self.event(environment="SANDBOX"), {"Authorization": AUTHORIZATION})
        self.assert_refused(answer, 403, "sandbox", "store-environment")
        self.assertEqual(self.stored(), before)
        self.assertEqual(self.deliver(self.event(environment="SANDBOX", type="TEST"))["outcome"], "ignored")
        service = self.serve("--store-environment", "any", env={"HEADROOM_REVENUECAT_AUTHORIZATION": AUTHORIZATION})
        for environment in ("SANDBOX", "PRODUCTION"):
            answer = service.http("POST", "/webhooks/revenuecat", self.event(environment=environment), {"Authorization": AUTHORIZATION})
            self.assertEqual(answer.status, 200)

    def test_an_event_of_a_store_that_is_not_set_up_is_refused_with_the_missing_setting(self):
        service = self.serve()
        for store, setting in (
            ("revenuecat", "revenuecat-authorization"), ("appstore", "appstore-bundle-id"), ("stripe", "stripe-signing-secret"),
        ):  # fmt: skip
            answer = service.http("POST", f"/webhooks/{store}", {"event": {}})
            self.assert_refused((answer.status, answer.json), 404, setting)

    def command(self, *arguments):
        """A command on the database, as its owner; its output."""
        done = succeed(*arguments, database_url=self.database_url)
        return done.stdout

    def test_an_unknown_product_is_kept_and_listed_and_applied_by_a_replay_once_it_is_mapped(self):
        product = f"new-{random.randrange(10**9)}"
        user, transaction = self.user(), self.transaction()
        bought = revenuecat("INITIAL_PURCHASE", PURCHASE, user, transaction, product_id=product,
                            purchased_at_ms=PURCHASE, expiration_at_ms=END)  # fmt: skip
        answer = self.deliver(bought)
        self.assertEqual(answer["outcome"], "failed")
        self.assertIn(product, answer["problem"])
        cancelled = revenuecat("CANCELLATION", LATER, user, transaction, product_id=product, cancel_reason="UNSUBSCRIBE",
                               expiration_at_ms=END)  # fmt: skip
        self.deliver(cancelled)
        self.assertEqual(self.answers(user)[0]["plan"], "trial", "no event is applied yet")
        listed = [json.loads(line) for line in self.command("events", "list", "--failed", "--json").splitlines()]
        entry = next(entry for entry in listed if entry["id"] == bought["event"]["id"])
        self.assertIn(product, entry["problem"])
        self.command("product", "map", "revenuecat", product, "--plan", "paid")
        command("events", "replay", "--failed", database_url=self.database_url)
        self.assert_answers(user, {"plan": "paid", "state": "cancelled", "status": "ALLOWED"}, "after the replay")
        self.assertEqual(self.deliver(bought)["outcome"], "duplicate")
        story = self.command("audit", user)
        for text in ("INITIAL_PURCHASE", "CANCELLATION: UNSUBSCRIBE", "paid"):
            self.assertIn(text, story)

    def test_an_empty_token_of_the_app_store_names_nobody(self):
        user, transaction = self.user(), self.transaction()
        bought = self.app_store.notification("SUBSCRIBED", "INITIAL_BUY", PURCHASE, user, transaction, expiresDate=LATER)
        self.assertEqual(self.deliver(bought)["outcome"], "applied")
        empty = lambda kind, transaction: self.app_store.notification(
            kind, None, LATER, None, transaction, expiresDate=END, purchaseDate=LATER, appAccountToken=""
        )
        renewed = self.deliver(empty("DID_RENEW", transaction))
        self.assertEqual((renewed["outcome"], renewed["user"]), ("applied", user))
        unknown = self.deliver(empty("SUBSCRIBED", self.transaction()))
        self.assertEqual((unknown["outcome"], "no user is known" in unknown["problem"]), ("failed", True))

    def test_an_event_whose_effect_the_database_refuses_is_kept_as_failed_and_counted(self):
        user = self.user()
        self.psql.run("create function refuse() returns trigger language plpgsql as $$ begin raise exception 'not today'; end $$")
        self.psql.run(
            "create trigger refuse before insert on message_usage for each row"
            f" when (new.user_id = '{user}') execute function refuse()"
        )
        bought = revenuecat("NON_RENEWING_PURCHASE", PURCHASE, user, self.transaction(), product_id="pack")
        name = bought["event"]["id"]
        answer = self.deliver(bought)
        self.assertEqual((answer["outcome"], answer["user"], "not today" in answer["problem"]), ("failed", user, True))
        self.assertIn(f"level=notice msg=\"a store event is stored\" event.id={name} event.outcome=failed", self.service.log())
        metrics = self.service.http("GET", "/metrics").text
        self.assertIn('headroom_webhook_requests_total{source="revenuecat",type="non_renewing_purchase",outcome="failed"} 1', metrics)
        self.psql.run("drop function refuse() cascade")
        self.command("events", "replay", "revenuecat", name)
        self.assertEqual(self.deliver(bought)["outcome"], "duplicate")
        self.assertEqual(self.answers(user)[0]["limit"], "150")

    def test_one_event_sent_many_times_at_once_counts_once(self):
        user, transaction = self.user(), self.transaction()
        body = compact(revenuecat("INITIAL_PURCHASE", PURCHASE, user, transaction, purchased_at_ms=PURCHASE, expiration_at_ms=END))
        outcomes, barrier = [], threading.Barrier(8)

        def deliver():
            barrier.wait(TIMEOUT_SECONDS)
            answer = self.service.http("POST", "/webhooks/revenuecat", body, {"Authorization": AUTHORIZATION})
            outcomes.append((answer.status, answer.json["outcome"]))

        threads = [threading.Thread(target=deliver) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(outcomes), [(200, "applied")] + [(200, "duplicate")] * 7)

    def test_the_log_names_the_event_and_nothing_of_what_is_in_it(self):
        service = self.serve("--log-level", "trace", *self.app_store.flags, env={"HEADROOM_REVENUECAT_AUTHORIZATION": AUTHORIZATION})
        user, transaction = self.user(), self.transaction()
        event = revenuecat("RENEWAL", PURCHASE, user, transaction, expiration_at_ms=END, aliases=["ann@example.com"])
        signed = self.app_store.notification("DID_RENEW", None, PURCHASE, user, transaction, expiresDate=END)
        service.http("POST", "/webhooks/revenuecat", event, {"Authorization": AUTHORIZATION})
        service.http("POST", "/webhooks/appstore", signed)
        service.http("POST", "/webhooks/revenuecat", event, {"Authorization": "Bearer " + "wrong" * 5})
        service.http("POST", "/webhooks/revenuecat", compact(event)[:-1], {"Authorization": AUTHORIZATION})
        service.stop()
        log = service.log()
        lines = [line for line in log.splitlines() if event["event"]["id"] in line and "event.outcome" in line]
        self.assertEqual(len(lines), 1, log)
        self.assertIn("RENEWAL", lines[0])
        for text in (user, transaction, "ann@", "example.com", "eyJ", AUTHORIZATION, "wrongwrong", signed["signedPayload"][:20]):
            self.assertNotIn(text, log)
        stored = self.psql.run("select string_agg(n::text, ' ') from headroom.billing_events n")[0][0]
        for text in ("@", "attributes", "country", "storefront"):
            self.assertNotIn(text, stored)


class Signatures(Webhooks):
    CLOCK = LATER
    FIRST, SECOND = "first-" + SIGNING_SECRET, "second-" + SIGNING_SECRET

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.file = os.path.join(processes.directory(), "signing-secrets")
        with open(cls.file, "w") as file:
            file.write(f"{cls.FIRST}\n{cls.SECOND}\n")
        environment = {
            "HEADROOM_REVENUECAT_AUTHORIZATION": f"{AUTHORIZATION},Bearer the-next-one",
            "HEADROOM_REVENUECAT_SIGNING_SECRET_FILE": cls.file,
        }
        cls.signing = cls.serve("--revenuecat-signature-window-seconds", "600", env=environment)

    def answer(self, signature, authorization=AUTHORIZATION, body=None):
        headers = {"Authorization": authorization, "X-RevenueCat-Webhook-Signature": signature}
        headers = {name: value for name, value in headers.items() if value is not None}
        return self.signing.http("POST", "/webhooks/revenuecat", body or self.body, headers)

    def setUp(self):
        super().setUp()
        self.body = compact(revenuecat("TEST", PURCHASE, self.user(), self.transaction()))

    def test_signatures_of_any_secret_and_any_authorization_are_taken_while_one_is_replaced(self):
        for secret in (self.FIRST, self.SECOND):
            for authorization in (AUTHORIZATION, "Bearer the-next-one"):
                self.assertEqual(self.answer(revenuecat_signature(self.body, secret), authorization).status, 200)
        both = revenuecat_signature(self.body, "a third one") + "," + revenuecat_signature(self.body, self.SECOND).split(",")[1]
        self.assertEqual(self.answer(both).status, 200)

    def test_wrong_missing_and_old_signatures_are_refused(self):
        good, now = revenuecat_signature(self.body, self.FIRST), time.time()
        for signature, text in [
            (None, "missing"), ("", "form"), ("v1=00", "form"), (good.replace("t=", "t=1"), "belong"),
            (revenuecat_signature(self.body, "another"), "belong"), (revenuecat_signature(self.body + b" ", self.FIRST), "belong"),
            (revenuecat_signature(self.body, self.FIRST, now - 1200), "600 seconds"),
            (revenuecat_signature(self.body, self.FIRST, now + 1200), "600 seconds"),
        ]:  # fmt: skip
            with self.subTest(signature=signature and signature[:40]):
                answer = self.answer(signature)
                self.assertEqual(answer.status, 401)
                self.assertIn(text, answer.json["detail"])
        self.assertEqual(self.answer(good, authorization=None).status, 401, "both are required")
        self.assertEqual(self.answer(good).status, 200)

    def test_a_secret_on_the_command_line_is_warned_of_and_not_shown(self):
        service = self.serve("--revenuecat-signing-secret", self.FIRST, "--revenuecat-authorization", AUTHORIZATION)
        log = service.log()
        self.assertIn("every user of this machine can read a secret on the command line", log)
        for setting in ("revenuecat-signing-secret", "revenuecat-authorization"):
            self.assertIn(f"setting={setting}", log)
        for secret in (self.FIRST, AUTHORIZATION):
            self.assertNotIn(secret, log + service.output())
        self.assertNotIn("secret", self.signing.log())

    def test_a_file_that_cannot_be_used_ends_the_start_and_is_named(self):
        for flags, setting in [
            (("--revenuecat-authorization-file", "/nonexistent"), "revenuecat-authorization-file"),
            (("--appstore-bundle-id", BUNDLE, "--appstore-root-certificate", self.file), "appstore-root-certificate"),
            (("--appstore-bundle-id", BUNDLE), "go together"),
        ]:  # fmt: skip
            service = Service(*flags, database_url=self.database_url, wait=False)
            self.services.append(service)
            self.assertNotEqual(service.wait(), 0)
            self.assertIn(setting, service.log())
            self.assertNotIn(self.FIRST, service.log())


class Faults(Webhooks):
    CLOCK = LATER

    def test_an_event_that_a_fault_of_ours_stops_is_answered_500_and_counts_when_it_is_sent_again(self):
        user, transaction = self.user(), self.transaction()
        event = revenuecat("INITIAL_PURCHASE", PURCHASE, user, transaction, purchased_at_ms=PURCHASE, expiration_at_ms=END)
        self.psql.run("alter function headroom.write_customer(jsonb) rename to taken_away")
        status, answer = self.post("/webhooks/revenuecat", event, {"Authorization": AUTHORIZATION})
        self.assertEqual((status, answer["code"]), (500, "INTERNAL"))
        self.assertIn(f"level=error msg=\"a store event could not be applied\" event.id={event['event']['id']}", self.service.log())
        self.psql.run("alter function headroom.taken_away(jsonb) rename to write_customer")
        self.assertEqual(self.deliver(event)["outcome"], "applied")


class DatabaseUnreachable(Case):
    OWN_CLUSTER = True
    FLAGS = None

    def test_an_event_is_answered_503_while_the_database_is_away_and_counts_when_it_is_sent_again(self):
        service = self.serve("--request-timeout-ms", "8000", env={"HEADROOM_REVENUECAT_AUTHORIZATION": AUTHORIZATION})
        self.psql.run("select headroom.map_product('revenuecat', 'premium', 'paid')")
        user, now = self.user(), time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        later = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 86_400))
        event = revenuecat("INITIAL_PURCHASE", now, user, "1000", purchased_at_ms=now, expiration_at_ms=later)
        deliver = lambda: service.http("POST", "/webhooks/revenuecat", event, {"Authorization": AUTHORIZATION})
        self.assertEqual(service.http("POST", "/webhooks/revenuecat", revenuecat("TEST", now, user, "1"),
                                      {"Authorization": AUTHORIZATION}).status, 200)  # fmt: skip
        self.psql.close()
        self.cluster.stop_immediately()
        answer = deliver()
        self.assertEqual((answer.status, answer.json["code"]), (503, "UNAVAILABLE"))
        self.assertGreaterEqual(int(answer.headers["Retry-After"]), 1)
        self.cluster.start()
        type(self).psql = self.cluster.session(self.database)
        outcome = wait_until(lambda: deliver().json.get("outcome"), "the event is taken")
        self.assertEqual(outcome, "applied")
        self.assertEqual(Answer(service.send_command(f"CONSUME {user}"))["plan"], "paid")
        self.assertEqual(deliver().json["outcome"], "duplicate")
