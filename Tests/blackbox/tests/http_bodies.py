"""Bodies of POST requests: requests that are refused before the body is read, encodings other than UTF-8, and peers that do not wait
for the answer."""

import json
import socket
import uuid

from support.stores import AUTHORIZATION, STRIPE_SECRET, compact, revenuecat, stripe_signature
from support.waiting import TIMEOUT_SECONDS, wait_until
from support.webhooks import END, PURCHASE, WEBHOOK_SETTINGS, Webhooks

LATER = "2026-03-10T12:00:00Z"
JSON_TYPE = {"Content-Type": "application/json"}
FORM_TYPE = {"Content-Type": "application/x-www-form-urlencoded"}
#: Every path that takes a body, with what a head needs to be let in.
PATHS = {
    "/webhooks/revenuecat": {**JSON_TYPE, "Authorization": AUTHORIZATION},
    "/webhooks/appstore": JSON_TYPE,
    "/webhooks/stripe": {**JSON_TYPE, "Stripe-Signature": stripe_signature(b"")},
    "/v1/billing-events": JSON_TYPE,
    "/dashboard/sign-in": FORM_TYPE,
    "/dashboard/sign-out": FORM_TYPE,
}
#: With what stands before a text where a byte order mark does.
ENCODINGS = ("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be")
DEEP = "[" * 5_000


class HTTPBodies(Webhooks):
    CLOCK = LATER

    def open(self, path, headers, body, length=None, service=None):
        """A connection on which a request was sent, with as much of its body as this."""
        connection = socket.create_connection(("127.0.0.1", (service or self.service).http_port), timeout=TIMEOUT_SECONDS)
        lines = [f"POST {path} HTTP/1.1", "Host: localhost", f"Content-Length: {len(body) if length is None else length}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        connection.sendall("\r\n".join([*lines, "", ""]).encode() + body)
        return connection

    def answer_without_body(self, path, headers, service=None):
        """All that comes for a head whose body does not follow, until the connection ends."""
        with self.open(path, headers, b"", 100_000, service) as connection:
            received = b""
            while chunk := connection.recv(65_536):
                received += chunk
            return received

    def events(self, identifier=None):
        where = f" where id = '{identifier}'" if identifier else ""
        return self.psql.number(f"select count(*) from headroom.billing_events{where}")

    def event(self):
        return revenuecat("RENEWAL", PURCHASE, self.user(), self.transaction(), expiration_at_ms=END)

    def test_a_head_that_says_another_encoding_is_refused_before_the_body_is_read(self):
        paths = PATHS | {f"/dashboard/users/{self.user()}/{action}": FORM_TYPE for action in ("grant", "reset")}
        for path, headers in paths.items():
            kind = headers["Content-Type"]
            for more in ({"Content-Encoding": "gzip"}, {"Content-Encoding": "identity, br"}, {"Content-Type": f"{kind}; charset=utf-16"},
                         {"Content-Type": f'{kind};charset="ISO-8859-1"'}):  # fmt: skip
                with self.subTest(path=path, more=more):
                    received = self.answer_without_body(path, headers | more)
                    self.assertRegex(received, rb"\AHTTP/1\.1 415 ")
                    self.assertIn(b"connection: close", received.lower())
                    if not path.startswith("/dashboard"):
                        self.assertIn(b'"code":"BADENCODING"', received)

    def test_a_sender_that_cannot_be_the_store_is_refused_before_the_body_is_read(self):
        for path, headers in [
            ("/webhooks/revenuecat", JSON_TYPE), ("/webhooks/revenuecat", {"Authorization": AUTHORIZATION + "x"}),
            ("/webhooks/stripe", JSON_TYPE), ("/webhooks/stripe", {"Stripe-Signature": "t=1,v1=00"}),
        ]:  # fmt: skip
            with self.subTest(path=path, headers=headers):
                self.assertRegex(self.answer_without_body(path, headers), rb"\AHTTP/1\.1 401 ")
        service = self.serve("--authentication", "required")
        for path in ("/webhooks/revenuecat", "/webhooks/appstore", "/webhooks/stripe"):
            with self.subTest(path=path):
                self.assertRegex(self.answer_without_body(path, PATHS[path], service), rb"\AHTTP/1\.1 404 ")
        self.assertRegex(self.answer_without_body("/v1/billing-events", JSON_TYPE, service), rb"\AHTTP/1\.1 401 ")

    def test_bodies_in_other_encodings_are_refused_and_change_nothing(self):
        event = self.event()
        signed = self.app_store.notification("DID_RENEW", None, PURCHASE, self.user(), self.transaction(), expiresDate=END)
        direct = {"source": "chargebee", "id": str(uuid.uuid4()), "at": PURCHASE, "kind": "cancelled", "transaction": "1"}
        before = self.events()
        for encoding in ENCODINGS:
            for path, value in [
                ("/webhooks/revenuecat", event), ("/webhooks/appstore", signed), ("/webhooks/stripe", {"id": "evt_1"}),
                ("/v1/billing-events", direct), ("/webhooks/revenuecat", DEEP), ("/v1/billing-events", DEEP),
            ]:  # fmt: skip
                with self.subTest(encoding=encoding, path=path):
                    body = (value if isinstance(value, str) else json.dumps(value)).encode(encoding)
                    headers = PATHS[path] | {"Stripe-Signature": stripe_signature(body)}
                    status, answer = self.post(path, body, headers)
                    self.assertEqual((status, answer["code"]), (415, "BADENCODING"), answer)
                    self.assertIn("send JSON in UTF-8", answer["detail"])
        latin = json.dumps(event, ensure_ascii=False).replace("premium", "pr\u00e9mium").encode("latin-1")
        for body in (latin, compact(event) + b"\0"):
            status, answer = self.post("/webhooks/revenuecat", body, PATHS["/webhooks/revenuecat"])
            self.assertEqual((status, answer["code"]), (415, "BADENCODING"), answer)
        self.assertEqual(self.events(), before)
        for body in (b"token=\xff", "token=x".encode("utf-16-le")):
            answer = self.service.http("POST", "/dashboard/sign-in", body, FORM_TYPE)
            self.assertEqual(answer.status, 415, answer.text)
        # A mark before UTF-8 may be ignored.
        status, answer = self.post("/webhooks/revenuecat", b"\xef\xbb\xbf" + compact(event), PATHS["/webhooks/revenuecat"])
        self.assertEqual(status, 200, answer)

    def test_an_event_whose_sender_is_gone_is_not_begun_and_one_that_has_begun_is_completed(self):
        # One session: while it waits for a lock, the next event waits for it.
        environment = {**WEBHOOK_SETTINGS, "HEADROOM_STRIPE_SIGNING_SECRET": STRIPE_SECRET}
        service = self.serve("--billing-sessions", "1", env=environment)
        metrics = lambda: service.http("GET", "/metrics").text
        disconnected_count = lambda count: f'headroom_webhook_requests_total{{source="revenuecat",type="none",outcome="gone"}} {count}\n'
        headers = PATHS["/webhooks/revenuecat"]
        begun, waiting, last = self.event(), self.event(), self.event()
        direct = {"source": "chargebee", "id": str(uuid.uuid4()), "at": PURCHASE, "kind": "cancelled", "transaction": "1"}
        locks = self.cluster.session(self.database)
        locks.run("begin")
        locks.run("lock table headroom.billing_events in access exclusive mode")
        with self.open("/webhooks/revenuecat", headers, compact(begun), service=service):
            self.wait_until_blocked()
        wait_until(lambda: disconnected_count(1) in metrics(), "the end of the one that has begun is noticed")
        self.open("/webhooks/revenuecat", headers, compact(waiting), service=service).close()
        wait_until(lambda: disconnected_count(2) in metrics(), "the end of the one that waits is noticed")
        self.open("/v1/billing-events", JSON_TYPE, compact(direct), service=service).close()
        refused = 'headroom_http_requests_total{route="/v1/billing-events",method="POST",status="4xx"} 1\n'
        wait_until(lambda: refused in metrics(), "so is that of a billing event")
        locks.close()
        self.assertEqual(service.http("POST", "/webhooks/revenuecat", last, headers).status, 200)
        stored = [self.events(event["event"]["id"]) for event in (begun, waiting, last)]
        self.assertEqual(stored, [1, 0, 1])
        self.assertEqual(self.events(direct["id"]), 0)

    def test_a_peer_that_waits_for_100_continue_gets_it_when_its_body_is_wanted(self):
        user, body = self.user(), b'{"n": 2}'
        path, wanted = f"/v1/usage/{user}/consume", b"HTTP/1.1 100 Continue\r\n\r\n"
        for expectation in ("100-continue", "100-Continue", "other, 100-continue"):
            with self.open(path, JSON_TYPE | {"Expect": expectation}, b"", len(body)) as connection:
                received = connection.makefile("rb")
                self.assertEqual(received.read(len(wanted)), wanted)
                # Two requests of one connection, the second with its body at once.
                connection.sendall(body + b"POST %s HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n" % path.encode())
                connection.sendall(b"Content-Length: 2\r\nConnection: close\r\n\r\n{}")
                rest = received.read()
                self.assertEqual(rest.count(b"HTTP/1.1 200 OK"), 2, rest)
                self.assertNotIn(b"100 Continue", rest)
        usage = self.service.http("GET", f"/v1/usage/{user}").json
        self.assertEqual(usage["used"], 9)
        for path, headers in PATHS.items():
            with self.subTest(path=path), self.open(path, headers | {"Expect": "100-continue"}, b"", 2) as connection:
                self.assertEqual(connection.makefile("rb").read(len(wanted)), wanted)

    def test_a_refusal_comes_in_place_of_100_continue(self):
        expecting = JSON_TYPE | {"Expect": "100-continue"}
        consume = f"/v1/usage/{self.user()}/consume"
        service = self.serve("--authentication", "required")
        for to, path, headers, status in (
            (self.service, "/webhooks/stripe", expecting, b"401"), (self.service, "/v1/nothing", expecting, b"404"),
            (self.service, consume, expecting | {"Content-Encoding": "gzip"}, b"415"), (service, consume, expecting, b"401"),
        ):  # fmt: skip
            with self.subTest(path=path, status=status):
                self.assertRegex(self.answer_without_body(path, headers, to), rb"\AHTTP/1\.1 %s " % status)
        with self.open(consume, expecting, b"", 99_999_999) as connection:
            self.assertRegex(connection.recv(20), rb"\AHTTP/1\.1 413 ")
        # Another expectation is ignored.
        answer = self.service.http("POST", consume, "{}", headers=JSON_TYPE | {"Expect": "200-maybe"})
        self.assertEqual(answer.status, 200)
