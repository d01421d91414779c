"""Counting over HTTP: what the contract says of a verb holds on both ports, and one port can commit what the other holds."""

import json
from concurrent.futures import ThreadPoolExecutor

from support.case import MID_MONTH, Case
from support.service import command
from support.waiting import wait_until
from support.wire import Answer

NUMBERS = {"used", "held", "limit", "remaining", "day", "days", "released", "retry_after"}
PATHS = {
    "SETPLAN": ("PUT", "/v1/users/{user}/plan"),
    "GRANT": ("POST", "/v1/users/{user}/grants"),
    "RESETUSAGE": ("POST", "/v1/users/{user}/reset"),
    "FORGET": ("DELETE", "/v1/users/{user}"),
}
"""Other verbs are POST /v1/usage/{user}/verb."""


class Line:
    """Sends requests as lines. A result is the answer's fields, as JSON has them, or the code of an error."""

    def __init__(self, service):
        self.service = service

    def request(self, verb, user, n=None, key=None, **options):
        words = [verb, user] + ([str(n)] if n is not None else [])
        if verb == "SETPLAN":
            words.append(options.pop("plan"))
        if verb == "RESETUSAGE" and "period" in options:
            words.append(options.pop("period"))
        words += [f"key={key}"] * (key is not None) + [f"{name}={value}" for name, value in options.items()]
        line = self.service.send_command(" ".join(words))
        if line.startswith("-"):
            return line[1:].split()[0]
        if line == "+OK":
            return {}
        fields = {}
        for name, value in Answer(line).fields.items():
            fields[name] = None if value == "unlimited" else int(value) if name in NUMBERS else value
        if "replayed" in fields:
            fields["replayed"] = True
        if not line.startswith("+OK"):
            fields["allowed"] = not line.startswith("+BLOCKED")
        fields.setdefault("held", 0)
        fields["unlimited"] = fields["limit"] is None
        return fields


class HTTP:
    """Sends requests as JSON."""

    def __init__(self, service):
        self.service = service

    def request(self, verb, user, n=None, key=None, **options):
        method, path = PATHS.get(verb, ("POST", "/v1/usage/{user}/" + verb.lower()))
        body = {**({"n": n} if n is not None else {}), **options}
        headers = {"Idempotency-Key": key} if key is not None else {}
        answer = self.send(method, path.format(user=user), json.dumps(body) if body else None, headers)
        return answer.json if answer.status == 200 else answer.json["code"]

    def send(self, method, path, body, headers):
        return self.service.http(method, path, body, headers)


class Counting(Case):
    """Cases that each port answers alike."""

    PORTS = (Line, HTTP)
    PLANS = None
    """SQL of the class's own plans."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if cls.PLANS:
            cls.psql.run(cls.PLANS)

    def ports(self):
        return [port(self.service) for port in self.PORTS]


class Holds(Counting):
    def test_a_hold_is_committed_or_released_once(self):
        for port in self.ports():
            user = self.subscriber()
            held = port.request("RESERVE", user, 5, key="a", ttl=60)
            self.assertEqual((held["allowed"], held["held"], held["used"]), (True, 5, 0))
            for repeated in (False, True):
                committed = port.request("COMMIT", user, key="a")
                self.assertEqual((committed["used"], committed["held"]), (5, 0))
                self.assertEqual(committed.get("replayed", False), repeated)
            self.assertEqual(port.request("RELEASE", user, key="a")["released"], 5)
            self.assertEqual(port.request("RELEASE", user, key="a")["released"], 0)
            self.assertEqual(port.request("COMMIT", user, key="a"), "CONFLICT")
            self.assertEqual(port.request("COMMIT", user, key="b"), "NOTFOUND")
            self.assertEqual(port.request("RESERVE", user, key="c", ttl=1)["held"], 1)
            wait_until(lambda: " held=" not in self.send_command(f"USAGE {user}"), "the hold is over")
            self.assertEqual(port.request("COMMIT", user, key="c"), "EXPIRED")
            self.assertEqual(self.count(user), 0)


class ActualAmounts(Counting):
    def test_a_commit_counts_some_of_what_is_held(self):
        for port in self.ports():
            user = self.subscriber()
            self.assertEqual(port.request("RESERVE", user, 500, key="a", ttl=60)["remaining"], 300)
            for n in (501, 1_000_000, 1_000_001, -1):
                self.assertEqual(port.request("COMMIT", user, n, key="a"), "BADARG")
            for repeated in (False, True):
                committed = port.request("COMMIT", user, 320, key="a")
                self.assertEqual((committed["allowed"], committed["used"], committed["held"]), (True, 320, 0))
                self.assertEqual((committed["remaining"], committed["tier"]), (480, "silent"))
                self.assertEqual(committed.get("replayed", False), repeated)
            for n in (None, 0, 319, 500, 501):
                self.assertEqual(port.request("COMMIT", user, n, key="a"), "CONFLICT")
            self.assertEqual(self.count(user), 320)
            released = port.request("RELEASE", user, key="a")
            self.assertEqual((released["released"], released["used"]), (320, 0))
            self.assertEqual(port.request("COMMIT", user, 320, key="a"), "CONFLICT")

    def test_a_commit_counts_nothing_or_all(self):
        for port in self.ports():
            user = self.subscriber()
            for key, n in (("nothing", 0), ("all", 5), ("one", 1)):
                port.request("RESERVE", user, 5, key=key)
                self.assertEqual(port.request("COMMIT", user, n, key=key)["held"], 0)
            self.assertEqual(port.request("COMMIT", user, key="all")["replayed"], True, "all that was held")
            self.assertEqual(self.count(user), 6)
            nothing = port.request("RELEASE", user, key="nothing")
            self.assertEqual((nothing["released"], "replayed" in nothing), (0, False))
            self.assertEqual(self.count(user), 6)


class TheSameOnBothPorts(Counting):
    CLOCK = MID_MONTH

    def test_the_whole_answers_are_equal(self):
        answers = []
        for port in self.ports():
            user = self.subscriber(used=797)
            each = [port.request("CONSUME", user, n) for n in (None, 3, 2, None)]
            self.assertEqual([answer["allowed"] for answer in each], [True, False, True, False])
            self.assertEqual(self.count(user), 800)
            answers.append([{**answer, "user": None} for answer in each])
        self.assertEqual(*answers)

    def test_a_check_counts_nothing_and_creates_nothing(self):
        for port in self.ports():
            user = self.user()
            for n, allowed in ((100, True), (101, False)):
                answer = port.request("CHECK", user, n)
                self.assertEqual((answer["allowed"], answer["plan"], answer["day"]), (allowed, "trial", 1))
            for table in ("public.message_usage", "headroom.subscribers", "headroom.subscriptions"):
                self.assertEqual(self.psql.number(f"select count(*) from {table} where user_id = '{user}'"), 0, table)

    def test_a_key_counts_once(self):
        for port in self.ports():
            user = self.subscriber()
            first, again = (port.request("CONSUME", user, 2, key="message-1") for _ in range(2))
            self.assertEqual((first["used"], again["used"], again["replayed"]), (2, 2, True))
            self.assertEqual(port.request("CONSUME", user, 3, key="message-1"), "CONFLICT")
            self.assertEqual(self.count(user), 2)

    def test_what_one_port_holds_the_other_commits(self):
        user = self.subscriber()
        line, http = self.ports()
        line.request("RESERVE", user, 3, key="a")
        self.assertEqual(http.request("COMMIT", user, key="a")["used"], 3)
        http.request("RESERVE", user, 4, key='"b"')
        self.assertEqual(line.request("COMMIT", user, key="b")["used"], 7, "quotes are those of the header field")

    def test_operators_change_users(self):
        for port in self.ports():
            user = self.user()
            answer = port.request("SETPLAN", user, plan="paid", state="cancelled", expires="2026-03-20", anchor=5)
            self.assertEqual((answer["plan"], answer["state"], answer["period"]), ("paid", "cancelled", "2026-03"))
            self.assertEqual(answer["expires"], "2026-03-20T00:00:00Z")
            self.assertEqual(port.request("GRANT", user, 50, key="g", reason="outage")["limit"], 850)
            self.assertEqual(port.request("GRANT", user, 50, key="g", reason="outage")["replayed"], True)
            self.assertEqual(port.request("GRANT", user, 51, key="g"), "CONFLICT")
            port.request("CONSUME", user, 7)
            self.assertEqual(port.request("RESETUSAGE", user)["used"], 0)
            self.assertEqual(port.request("RESETUSAGE", user, period="2020-01"), "NOTFOUND")
            self.assertEqual(port.request("SETPLAN", user, plan="unknown"), "NOTFOUND")
            self.assertEqual(port.request("FORGET", user), {})
            self.assertEqual(self.psql.run(f"select from headroom.subscribers where user_id = \'{user}\'"), [])

    def test_bad_values_are_refused_and_nothing_is_done(self):
        for port in self.ports():
            user = self.user()
            for n in (0, -1, 1_000_001, 10**15):
                self.assertEqual(port.request("CONSUME", user, n), "BADARG", n)
            self.assertEqual(port.request("CONSUME", "nobody"), "BADARG")
            self.assertEqual(port.request("CONSUME", user, key="k" * 129), "BADARG")
            self.assertEqual(port.request("RESERVE", user), "BADARG", "without a key")
            self.assertEqual(port.request("RESERVE", user, key="k", ttl=86_401), "BADARG")
            self.assertEqual(port.request("SETPLAN", user, plan="No Plan" if isinstance(port, HTTP) else "No"), "BADARG")
            self.assertEqual(port.request("SETPLAN", user, plan="paid", expires="tomorrow"), "BADARG")
            self.assertEqual(self.psql.run(f"select from headroom.subscribers where user_id = \'{user}\'"), [])

    def test_many_at_once_are_counted_exactly(self):
        user = self.subscriber(used=760)
        http = self.ports()[-1]
        with ThreadPoolExecutor(16) as threads:
            answers = list(threads.map(lambda _: http.request("CONSUME", user), range(100)))
        self.assertEqual(sum(answer["allowed"] for answer in answers), 40)
        self.assertEqual(sorted(answer["used"] for answer in answers if answer["allowed"]), list(range(761, 801)))


class Requests(Case):
    """What only HTTP has."""

    CLOCK = MID_MONTH

    def post(self, path, body=None, headers=None, method="POST"):
        return self.service.http(method, path, body, headers)

    def test_a_refusal_has_the_fields_of_http(self):
        user = self.subscriber(used=800)
        answer = self.post(f"/v1/usage/{user}/consume", '{"n": 1}')
        self.assertEqual((answer.status, answer.json["allowed"]), (200, False))
        self.assertEqual(answer.headers["Retry-After"], str(answer.json["retry_after"]))
        self.assertRegex(answer.headers["RateLimit"], '^"paid";r=0;t=')
        self.assertEqual(answer.headers["Cache-Control"], "no-store")
        ended = self.subscriber(options="state=revoked")
        self.assertIsNone(self.post(f"/v1/usage/{ended}/consume").headers["Retry-After"], "waiting does not help")

    def test_a_body_is_an_object_of_the_arguments_and_may_be_left_out(self):
        user = self.subscriber()
        path = f"/v1/usage/{user}/consume"
        for body in (None, "", "{}", ' {"n" : 1} '):
            self.assertEqual(self.post(path, body).status, 200, body)
        self.assertEqual(self.count(user), 4)
        for body, what in (
            ("[]", "must be a JSON object"),
            ("1", "must be a JSON object"),
            ('{"n": "1"}', "n must be a whole number"),
            ('{"n": 1.5}', "n must be a whole number"),
            ('{"n": null}', "n must be a whole number"),
            ('{"m": 1}', "this path takes n"),
            ('{"n": 1, "ttl": 5}', "this path takes n"),
        ):
            answer = self.post(path, body)
            self.assertEqual((answer.status, answer.json["code"]), (400, "BADARG"), body)
            self.assertIn(what, answer.json["detail"])
        for body, status in (("{", 400), ('{"n": 1} x', 400), (b'{"n": \xff}', 415), ('{"n": 1}' + " " * 2_000_000, 413)):
            self.assertEqual(self.post(path, body).status, status)
        self.assertEqual(self.count(user), 4)

    def test_the_key_is_a_header_field(self):
        user = self.subscriber()
        path = f"/v1/usage/{user}"
        self.assertIn("Idempotency-Key is missing", self.post(f"{path}/commit").json["detail"])
        refused = self.post(f"{path}/check", headers={"Idempotency-Key": "a"})
        self.assertEqual((refused.status, refused.json["code"]), (400, "BADARG"))
        for key in ("", '""', "a b", 'a"b', "\xe9", "a\tb", "k" * 129):
            self.assertEqual(self.post(f"{path}/consume", headers={"Idempotency-Key": key}).status, 400, key)
        self.assertEqual(self.post(f"{path}/consume?n=1").json["detail"], "unknown parameter; this path takes none")

    def test_of_a_page_of_another_site_are_refused_without_a_token(self):
        user = self.subscriber()
        event = '{"source": "a", "id": "b", "at": "2026-03-01T00:00:00Z", "kind": "purchased"}'
        for headers in (
            {"Origin": "https://evil.example"},
            {"Origin": "null"},
            {"Sec-Fetch-Site": "cross-site"},
        ):
            for path, body in ((f"/v1/usage/{user}/consume", None), (f"/v1/users/{user}/reset", None), ("/v1/billing-events", event)):
                answer = self.post(path, body, headers)
                self.assertEqual((answer.status, answer.json["code"]), (403, "FORBIDDEN"), path)
        self.assertEqual(self.post(f"/v1/usage/{user}/check", headers={"Origin": f"http://127.0.0.1:{self.service.http_port}"}).status, 200)
        self.assertEqual(self.psql.run(f"select message_count from message_usage where user_id = '{user}'"), [["0"]])

    def test_are_in_the_metrics(self):
        user = self.subscriber(used=799)
        before = self.service.info()
        for _ in range(2):
            self.post(f"/v1/usage/{user}/consume")
        self.post(f"/v1/usage/{user}/commit", headers={"Idempotency-Key": "a"})
        self.post(f"/v1/usage/{user}/consume", '{"n": 0}')
        self.post("/v1/usage/nobody/consume")
        after = self.service.info()
        for name, count in (
            ("verb_consume", 2),
            ("verb_commit", 1),
            ("answers_allowed", 1),
            ("answers_blocked", 1),
            ("errors_notfound", 1),
            ("errors_badarg", 2),
        ):
            self.assertEqual(int(after.get(name, 0)) - int(before.get(name, 0)), count, name)


class Tokens(Case):
    FLAGS = ("--authentication", "required")

    def test_need_the_scopes_of_the_verbs(self):
        tokens = {
            scope: command("token", "create", scope, "--scope", scope, database_url=self.database_url).stdout.strip()
            for scope in ("chat", "dashboard", "operator")
        }

        def status(scope, method, path, body=None, key=None):
            headers = {"Authorization": f"Bearer {tokens[scope]}"} if scope else {}
            return self.service.http(method, path, body, {**headers, **({"Idempotency-Key": key} if key else {})}).status

        user = self.user()
        wait_until(lambda: status("operator", "GET", "/v1/report") == 200, "the service has read the tokens")
        for permitted, method, path, body, key in (
            ("chat", "POST", f"/v1/usage/{user}/consume", None, None),
            ("chat", "POST", f"/v1/usage/{user}/check", None, None),
            ("chat", "POST", f"/v1/usage/{user}/reserve", None, "a"),
            ("chat", "POST", f"/v1/usage/{user}/commit", None, "a"),
            ("chat", "POST", f"/v1/usage/{user}/release", None, "a"),
            ("operator", "PUT", f"/v1/users/{user}/plan", '{"plan": "paid"}', None),
            ("operator", "POST", f"/v1/users/{user}/grants", '{"n": 1}', "b"),
            ("operator", "POST", f"/v1/users/{user}/reset", None, None),
            ("operator", "DELETE", f"/v1/users/{user}", None, None),
        ):
            if method == "DELETE":
                actors = self.psql.run(f"select actor from audit_trail where user_id = '{user}' and action = 'grant'")
                self.assertIn("token:operator", actors[0][0], "the change has the token's name")
            self.assertEqual(status(None, method, path, body, key), 401, path)
            for scope in tokens:
                is_permitted = scope == permitted or path.endswith("/check")
                self.assertEqual(status(scope, method, path, body, key), 200 if is_permitted else 403, f"{path} {scope}")
        metrics = self.service.http("GET", "/metrics", headers={"Authorization": f"Bearer {tokens['operator']}"}).text
        for code, count in (("noauth", 9), ("forbidden", 16)):
            self.assertIn(f'headroom_errors_total{{code="{code}"}} {count}\n', metrics)
