"""The JSON API over HTTP: its answers about users equal those of the line protocol, and its errors follow HTTP."""

import json
import socket
from http import HTTPStatus

from support.case import MID_MONTH, Case
from support.service import command
from support.waiting import TIMEOUT_SECONDS, wait_until
from support.wire import Answer

USER = "7f1c0a52-3a51-4a7e-9d55-0b6a3f1f7c11"
PAGE = "docs/openapi.json"
NUMBERS = {"used", "held", "limit", "remaining", "day", "days"}


def answers_line(status):
    return f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n".encode()


def expected(line):
    """The fields of an answer's line as the API has them."""
    fields = {}
    for name, value in Answer(line).fields.items():
        if value == "unlimited":
            fields[name] = None
        else:
            fields[name] = int(value) if name in NUMBERS else value
    fields.setdefault("held", 0)
    fields["unlimited"] = fields["limit"] is None
    return fields


class API(Case):
    CLOCK = MID_MONTH

    def get(self, path, headers=None, method="GET"):
        return self.service.http(method, path, headers=headers)

    def problem(self, answer, status, code):
        self.assertEqual(answer.status, status, answer.text)
        self.assertEqual(answer.headers["Content-Type"], "application/problem+json")
        self.assertEqual(answer.headers["Cache-Control"], "no-store")
        body = answer.json
        self.assertEqual((body["status"], body["code"], body["type"]), (status, code, "about:blank"))
        self.assertTrue(body["title"] and body["detail"])
        return body["detail"]

    def test_usage_is_what_the_line_protocol_says_of_users_of_every_kind(self):
        users = {
            "new": self.user(),
            "silent": self.subscriber(used=160),
            "gentle": self.subscriber(used=700),
            "blocked": self.subscriber(used=800),
            "anchored": self.subscriber(options="anchor=20", used=3),
            "trial": self.subscriber("trial", used=41),
            "pro": self.subscriber("pro", used=12),
            "free": self.subscriber("free"),
            "cancelled": self.subscriber(options="state=cancelled expires=2026-03-20", used=5),
            "grace": self.subscriber(options="state=grace_period", used=5),
            "revoked": self.subscriber(options="state=revoked"),
            "lapsed": self.subscriber(options="state=cancelled expires=2026-03-01"),
        }
        held = self.subscriber(used=1)
        self.send_command(f"RESERVE {held} 7 key=k")
        users["holding"] = held
        for kind, user in users.items():
            with self.subTest(kind):
                answer = self.get(f"/v1/usage/{user}")
                self.assertEqual(answer.status, 200, answer.text)
                self.assertEqual(answer.headers["Content-Type"], "application/json")
                self.assertEqual(answer.json, expected(self.send_command(f"USAGE {user}")))

    def test_usage_of_a_period_is_that_of_its_row(self):
        user = self.subscriber(used=160)
        self.psql.run(
            "insert into message_usage (bucket, user_id, billing_period, message_count, \"limit\", plan)"
            f" values (headroom.bucket_of('{user}'), '{user}', '2026-01', 700, 800, 'paid')"
        )
        answer = self.get(f"/v1/usage/{user}?period=2026-01")
        self.assertEqual(answer.json, expected(self.send_command(f"USAGE {user} 2026-01")))
        self.assertIsNone(answer.headers["RateLimit"], "nothing comes back in a period of the past")
        self.assertEqual(self.get(f"/v1/usage/{user}?period=2026-03").json, expected(self.send_command(f"USAGE {user}")))
        self.problem(self.get(f"/v1/usage/{user}?period=2025-01"), 404, "NOTFOUND")

    def test_history_and_report_are_what_the_line_protocol_says(self):
        user = self.subscriber("trial", used=41)
        self.send_command(f"SETPLAN {user} paid")
        self.send_command(f"CONSUME {user} 7")
        self.send_command(f"SETPLAN {user} pro")
        self.send_command(f"CONSUME {user}")
        with self.service.connect() as connection:
            lines = connection.send_list_command(f"HISTORY {user}")
        expected_periods = []
        for each in lines:
            fields = expected(each)
            expected_periods.append({name: fields[name] for name in ("period", "used", "limit", "unlimited", "tier")})
        self.assertEqual(len(expected_periods), 2)
        self.assertEqual(self.get(f"/v1/history/{user}").json, {"user": user, "periods": expected_periods})
        self.assertEqual(self.get(f"/v1/history/{user}?months=1").json["periods"], expected_periods[:1])
        self.assertEqual(self.get(f"/v1/history/{self.user()}").json["periods"], [])
        for path, request in (("/v1/report", "REPORT"), ("/v1/report/trial", "REPORT trial"), ("/v1/report/1999-12", "REPORT 1999-12")):
            fields = Answer(self.send_command(request)).fields
            self.assertEqual(self.get(path).json, {n: v if n == "period" else int(v) for n, v in fields.items()}, path)

    def test_rate_limit_fields_tell_the_allowance_and_when_it_comes_back(self):
        month, left = 31 * 86_400, 16 * 86_400 + 14 * 3_600 + 30 * 60
        cases = [
            (self.subscriber(used=160), f'"paid";q=800;w={month}', f'"paid";r=640;t={left}'),
            (self.subscriber(used=800), f'"paid";q=800;w={month}', f'"paid";r=0;t={left}'),
            (self.subscriber("trial", used=41), f'"trial";q=100;w={3 * 86_400}', '"trial";r=59'),
            (self.subscriber("free"), '"free";q=0', '"free";r=0'),
            (self.subscriber(options="state=revoked"), '"paid";q=800', '"paid";r=0'),
            (self.subscriber("pro", used=1), None, None),
        ]
        for user, policy, limit in cases:
            answer = self.get(f"/v1/usage/{user}")
            self.assertEqual((answer.headers["RateLimit-Policy"], answer.headers["RateLimit"]), (policy, limit), answer.text)

    def test_a_body_that_the_client_has_is_not_sent_again(self):
        user = self.subscriber(used=1)
        path = f"/v1/usage/{user}"
        first = self.get(path)
        tag = first.headers["ETag"]
        self.assertRegex(tag, r'^"[A-Za-z0-9_-]{22}"$')
        self.assertEqual(self.get(path).headers["ETag"], tag)
        for named in (tag, f"W/{tag}", f'"x", {tag}', f'W/"x",{tag} , "y"', "*"):
            again = self.get(path, {"If-None-Match": named})
            self.assertEqual((again.status, again.body, again.headers["ETag"]), (304, b"", tag), named)
            self.assertEqual(again.headers["Cache-Control"], first.headers["Cache-Control"])
            self.assertIsNone(again.headers["Content-Type"])
        for named in ('"x"', tag.strip('"'), "", '"', "W/*", f"x{tag}"):
            self.assertEqual(self.get(path, {"If-None-Match": named}).status, 200, named)
        self.send_command(f"CONSUME {user}")
        changed = self.get(path, {"If-None-Match": tag})
        self.assertEqual((changed.status, changed.json["used"]), (200, 2))
        self.assertNotEqual(changed.headers["ETag"], tag)

    def test_head_is_get_without_the_body(self):
        user = self.subscriber(used=1)
        for path in (f"/v1/usage/{user}", f"/v1/history/{user}", "/v1/report", "/v1/openapi.json", "/healthz", "/readyz"):
            got, head = self.get(path), self.get(path, method="HEAD")
            self.assertEqual((head.status, head.body), (got.status, b""), path)
            for name in ("ETag", "Content-Type", "Content-Length", "Cache-Control", "RateLimit"):
                self.assertEqual(head.headers[name], got.headers[name], f"{path} {name}")
        self.assertEqual(self.get("/metrics", method="HEAD").status, 200)

    def test_head_has_no_body_when_it_is_refused_either(self):
        refused = (("/nothing", 404), ("/webhooks/revenuecat", 405), ("/v1/usage/nobody", 400), ("/v1/usage/" + USER, 200))
        with socket.create_connection(("127.0.0.1", self.service.http_port), TIMEOUT_SECONDS) as connection:
            answers = connection.makefile("rb")
            for path, status in refused:
                connection.sendall(f"HEAD {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
                self.assertEqual(answers.readline(), answers_line(status), path)
                while answers.readline() != b"\r\n":
                    pass

    def test_other_methods_are_refused_with_those_that_there_are(self):
        paths = (f"/v1/usage/{USER}", "/v1/report", "/v1/openapi.json", "/metrics", "/healthz", "/readyz")
        for path in paths:
            for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "MKCOL"):
                answer = self.get(path, method=method)
                self.problem(answer, 405, "BADMETHOD")
                self.assertEqual(answer.headers["Allow"], "GET, HEAD")
        for path in ("/v1", "/v1/usage", "/v1/usage/a/b", "/v2/usage/" + USER, "/%2e%2e/etc/passwd", "/metrics/x"):
            for method in ("GET", "POST", "DELETE"):
                self.problem(self.get(path, method=method), 404, "NOTFOUND")

    def test_a_path_may_be_written_with_percent_signs(self):
        user = self.subscriber(used=7)
        self.assertEqual(self.get("/v1/usage/" + user.replace("-", "%2D")).json["used"], 7)
        self.assertEqual(self.get(f"/v1/usage/{user}?period=2026%2D03").json["used"], 7)
        self.assertEqual(self.get("/v1/report/2026%2d03").json["period"], "2026-03")
        for path in ("/v1/report/%FF", "/v1/report/%", "/v1/usage/%F0%9F"):
            self.problem(self.get(path), 400, "BADARG")

    def test_bad_parameters_are_refused_with_what_they_must_be(self):
        for path, what in (
            ("/v1/usage/nobody", "user must be a UUID"),
            (f"/v1/usage/{USER[:-1]}", "user must be a UUID"),
            (f"/v1/usage/{{{USER}}}", "user must be a UUID"),
            (f"/v1/usage/{USER}%00", "user must be a UUID"),
            (f"/v1/usage/{USER}?period=2026-13", "period must be a month"),
            (f"/v1/usage/{USER}?period=", "period must be a month"),
            (f"/v1/usage/{USER}?period=2026-01&period=2026-02", "given twice"),
            (f"/v1/usage/{USER}?months=3", "this path takes period"),
            (f"/v1/history/{USER}?months=0", "months must be a number from 1 to 1200"),
            (f"/v1/history/{USER}?months=1201", "months must be a number"),
            (f"/v1/history/{USER}?months=03", "months must be a number"),
            (f"/v1/history/{USER}?months=%2B3", "months must be a number"),
            (f"/v1/history/{USER}?months=99999999999999999999", "months must be a number"),
            ("/v1/report/2026-13", "period must be a month"),
            ("/v1/report/DROP%20TABLE", "period must be a month"),
            ("/v1/report?period=2026-01", "this path takes none"),
            ("/v1/openapi.json?x=1", "this path takes none"),
        ):
            detail = self.problem(self.get(path), 400, "BADARG")
            self.assertIn(what, detail, path)
            self.assertNotIn("DROP", detail)

    def test_another_sites_name_for_this_machine_is_refused_where_no_token_is_required(self):
        port = self.service.http_port
        guarded = (f"/v1/usage/{USER}", f"/v1/history/{USER}", "/v1/report", "/v1/report/trial", "/metrics")
        for host in (f"evil.example:{port}", "evil.example", f"127.0.0.1.evil.example:{port}", "headroom.evil.example", ""):
            for path in guarded:
                detail = self.problem(self.get(path, {"Host": host}), 421, "BADHOST")
                self.assertIn("headroom token create", detail)
            for path in ("/healthz", "/readyz", "/v1/openapi.json"):
                self.assertEqual(self.get(path, {"Host": host}).status, 200, f"{path} as {host}")
            answer = self.service.http("POST", "/webhooks/revenuecat", b"{}", {"Host": host})
            self.assertNotEqual(answer.status, 421, "senders of purchases authenticate in another way")
        for host in (f"127.0.0.1:{port}", f"localhost:{port}", f"[::1]:{port}", "10.1.2.3", f"headroom:{port}", "headroom"):
            for path in guarded:
                self.assertEqual(self.get(path, {"Host": host}).status, 200, f"{path} as {host}")

    def test_the_description_is_the_one_that_is_published(self):
        with open(__file__.rsplit("/Tests/", 1)[0] + "/" + PAGE, "rb") as file:
            published = file.read()
        answer = self.get("/v1/openapi.json")
        self.assertEqual(answer.body, published)
        self.assertEqual(answer.headers["Content-Type"], "application/json")
        # Each path and parameter that is described is there, and takes the one method that is.
        described = json.loads(published)["paths"]
        self.assertGreater(len(described), 5)
        # What is linked has an event that names no user.
        bought = {"source": "chargebee", "id": "ev_0", "at": "2026-11-05T09:30:00Z", "kind": "expired", "transaction": "2000000123456789"}
        self.service.http("POST", "/v1/billing-events", json.dumps(bought))
        for path, operations in described.items():
            ((method, operation),) = operations.items()
            filled = path.replace("{user}", USER).replace("{period}", "trial")
            body = None
            if "requestBody" in operation:
                example = operation["requestBody"]["content"]["application/json"]["example"]
                own = {"user": self.user(), "source": "chargebee"}
                body = json.dumps({name: own.get(name, value) for name, value in example.items()})
            headers = {
                parameter["name"]: parameter["example"]
                for parameter in operation.get("parameters", ())
                if parameter["in"] == "header" and parameter["required"]
            }
            answer = self.service.http(method.upper(), filled, body, headers)
            self.assertEqual(answer.status, 200, f"{path} {answer.text}")
            other = "POST" if method == "get" else "GET"
            self.assertIn(str(self.get(filled, method=other).status), operation["responses"])


class Tokens(Case):
    def setUp(self):
        super().setUp()
        self.psql.run("update headroom.tokens set revoked_at = headroom.now() where revoked_at is null")
        self.tokens = {
            scope: command("token", "create", "a", "--scope", scope, database_url=self.database_url).stdout.strip()
            for scope in ("chat", "dashboard", "operator")
        }
        wait_until(lambda: self.status("/v1/report", "operator") == 200, "the service has read the tokens")

    def status(self, path, scope=None):
        headers = {"Authorization": f"Bearer {self.tokens[scope]}"} if scope else {}
        return self.service.http("GET", path, headers=headers).status

    def test_decide_as_on_the_line_protocol_who_may_read_what(self):
        for path, scopes in (
            (f"/v1/usage/{USER}", {"chat", "dashboard", "operator"}),
            (f"/v1/history/{USER}", {"dashboard", "operator"}),
            ("/v1/report", {"dashboard", "operator"}),
            ("/v1/report/trial", {"dashboard", "operator"}),
            ("/metrics", {"chat", "dashboard", "operator"}),
        ):
            self.assertEqual(self.status(path), 401, path)
            for scope in self.tokens:
                self.assertEqual(self.status(path, scope), 200 if scope in scopes else 403, f"{path} as {scope}")
        refused = self.service.http("GET", f"/v1/usage/{USER}")
        self.assertEqual(refused.headers["WWW-Authenticate"], 'Bearer realm="headroom"')
        self.assertEqual(refused.json["code"], "NOAUTH")
        for wrong in ("Bearer headroom_wrong", "Bearer", "Basic YTpi", self.tokens["chat"]):
            answer = self.service.http("GET", "/v1/report", headers={"Authorization": wrong})
            self.assertEqual((answer.status, answer.json["code"]), (401, "NOAUTH"), wrong)

    def test_make_every_name_good_also_where_they_are_not_required(self):
        elsewhere = {"Host": "headroom.example"}
        token = {"Authorization": f"Bearer {self.tokens['operator']}"}
        self.assertEqual(self.service.http("GET", "/metrics", headers=elsewhere).status, 401, "no answer without a token")
        unlocked = self.serve("--authentication", "off")
        wait_until(lambda: unlocked.http("GET", "/readyz").status == 200, "the lanes are connected")
        for service in (self.service, unlocked):
            for path in ("/metrics", "/v1/report", "/dashboard"):
                self.assertEqual(service.http("GET", path, headers={**elsewhere, **token}).status, 200, path)
        self.assertEqual(unlocked.http("GET", "/metrics", headers=elsewhere).status, 421)

    def test_are_not_needed_for_health_and_for_the_description(self):
        for path in ("/healthz", "/readyz", "/v1/openapi.json"):
            self.assertEqual(self.status(path), 200)
            answer = self.service.http("GET", path, headers={"Authorization": "Bearer wrong"})
            self.assertEqual(answer.status, 200, path)


class Health(Case):
    OWN_CLUSTER = True
    # The first requests wait for this long.
    FLAGS = ("--request-timeout-ms", "1000")

    def ready(self):
        answer = self.service.http("GET", "/readyz")
        self.assertEqual(answer.headers["Content-Type"], "application/json")
        self.assertEqual(answer.headers["Cache-Control"], "no-store")
        return answer.status, answer.json

    def test_follows_the_database_while_the_service_lives(self):
        well = {"database": True, "schema": True, "tokens": True, "accepting": True}

        def is_ready():
            return self.ready() == (200, {"ready": True, "checks": well, "reasons": [], "warnings": []})

        def is_without(check):
            """That check alone, or one that it brings with it, and the reason is said."""
            status, body = self.ready()
            return (status, body["ready"], body["checks"][check]) == (503, False, False) and [
                reason.split(":")[0] for reason in body["reasons"]
            ] == [name for name in well if not body["checks"][name]] and body["checks"]["accepting"]

        wait_until(is_ready, "all lanes are connected")
        user = self.user()
        self.psql.run(f"select set_plan('{user}', 'paid')")
        self.psql.close()
        self.cluster.stop_immediately()
        wait_until(lambda: is_without("database"), "it is noticed")
        alive = self.service.http("GET", "/healthz")
        self.assertEqual((alive.status, alive.text), (200, "ok\n"))
        for path in (f"/v1/usage/{user}", f"/v1/history/{user}", "/v1/report"):
            answer = self.service.http("GET", path)
            self.assertEqual((answer.status, answer.json["code"]), (503, "UNAVAILABLE"), path)
            self.assertRegex(answer.headers["Retry-After"], r"^[1-9][0-9]*$")
            # Of a user's usage a person reads it, as on the line.
            words = "I couldn't check your usage right now. Let's try again in a moment."
            self.assertEqual(answer.json["detail"] == words, path.startswith("/v1/usage"), answer.json["detail"])
            self.assertEqual(answer.json.get("banner"), words if path.startswith("/v1/usage") else None, path)
            self.assertEqual("Content-Language" in answer.headers, path.startswith("/v1/usage"), path)
        # In the language of the request, also where another one is the most preferred.
        for language, words_in_it in (("de", "Ich konnte"), ("fr", "Je n’ai pas pu")):
            answer = self.service.http("GET", f"/v1/usage/{user}", headers={"Accept-Language": f"xx, {language}-CH;q=0.5"})
            self.assertEqual((answer.status, answer.json["code"]), (503, "UNAVAILABLE"))
            self.assertIn(words_in_it, answer.json["detail"])
            self.assertEqual(answer.headers["Content-Language"], language)
            self.assertEqual(answer.headers["Vary"], "Accept-Language")
            for verb in ("consume", "check", "reserve", "commit", "release"):
                headers = {"Accept-Language": language} | ({} if verb == "check" else {"Idempotency-Key": "a"})
                answer = self.service.http("POST", f"/v1/usage/{user}/{verb}", headers=headers)
                self.assertEqual((answer.status, answer.json["code"]), (503, "UNAVAILABLE"), verb)
                self.assertIn(words_in_it, answer.json["banner"], verb)
                self.assertIn("database", answer.json["detail"], "what a developer reads is in English")
                self.assertEqual(answer.headers["Content-Language"], language)
        named = self.service.http("POST", f"/v1/usage/{user}/consume", '{"lang": "de"}', headers={"Accept-Language": "fr"})
        self.assertIn("Ich konnte", named.json["banner"])
        self.assertNotIn("banner", self.service.http("POST", f"/v1/users/{user}/reset").json)
        self.assertRegex(self.send_command(f"USAGE {user}"), rf"^-UNAVAILABLE retry_ms=\d+ {words}$")
        self.assertEqual(self.service.http("GET", "/metrics").status, 200)
        self.cluster.start()
        type(self).psql = self.cluster.session(self.database)
        wait_until(lambda: self.ready()[0] == 200, "the lanes are back")
        # A dump of an older release is restored.
        self.psql.run("create temp table newest as select * from headroom.migrations order by number desc limit 1")
        self.psql.run("delete from headroom.migrations where number = (select number from newest)")
        wait_until(lambda: is_without("schema"), "it is noticed")
        self.psql.run("insert into headroom.migrations select * from newest")
        wait_until(lambda: self.ready()[0] == 200, "it is noticed")

    def test_says_that_the_service_drains_while_it_does(self):
        service = self.serve("--request-timeout-ms", "60000", "--drain-timeout-ms", "300000")
        with service.connect() as connection:
            # A hold on the user's row keeps a request under way, and with it the service.
            user = self.user()
            self.assertIn("ALLOWED", connection.send_command(f"CONSUME {user}"))
            locker = self.lock_rows(user)
            connection.send(f"CONSUME {user}\n")
            self.wait_until_blocked()
            service.signal(15)
            answer = wait_until(lambda: (lambda a: a.status == 503 and a)(service.http("GET", "/readyz")), "readiness says so")
            self.assertEqual(answer.json["checks"], {"database": True, "schema": True, "tokens": True, "accepting": False})
            self.assertEqual(answer.json["reasons"], ["accepting: the service is shutting down"])
            self.assertEqual(service.http("GET", "/healthz").status, 200)
            locker.close()
            self.assertIn("ALLOWED", connection.read_line())
        self.assertEqual(service.wait(), 0)
