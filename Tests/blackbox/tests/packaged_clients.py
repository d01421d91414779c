"""The clients of clients/python and clients/node against the service: each case for each client, over TCP and over HTTP."""

import json
import shutil
import unittest
import uuid

from support import processes
from support.case import Case, called_by
from support.certificates import Authority
from support.client_case import LIMIT, SILENT, ClientCase
from support.faulty_port import LOST, http_answer
from support.packaged_clients import ROOT, Failed, PythonClient, Session
from support.tokens import token
from support.waiting import wait_until


class Answers(ClientCase):
    SHARED = True

    @called_by("each")
    def test_a_refusal_has_the_words_the_tier_and_when_to_come_back(self, client):
        user = self.subscriber(used=800)
        for method in ("consume", "check"):
            answer = client.call(method, user)
            self.assertEqual((answer["status"], answer["allowed"], answer["degraded"]), ("blocked", False, False))
            self.assertEqual((answer["tier"], answer["reason"], answer["banner"]), ("blocked", "limit_reached", LIMIT))
            self.assertEqual((answer["used"], answer["limit"], answer["remaining"]), (800, 800, 0))
            self.assertEqual(answer["resets"], "2026-04-01T00:00:00Z")
            self.assertEqual(answer["retry_after"], (16 * 24 + 14) * 3600 + 1800)
        self.assertEqual(self.count(user), 800)

    @called_by("each")
    def test_each_call_without_a_key_counts(self, client):
        user = self.subscriber(used=700)
        self.assertEqual([client.call("consume", user)["used"] for _ in range(2)], [701, 702])
        answer = client.call("consume", user, n=3)
        self.assertEqual((answer["status"], answer["allowed"], answer["used"]), ("allowed", True, 705))
        self.assertEqual(answer["banner"], "You have 95 conversations left this month")
        self.assertEqual(self.count(user), 705)

    @called_by("each")
    def test_a_key_counts_once_and_a_repetition_is_not_allowed(self, client):
        user = self.subscriber(used=700)
        self.assertEqual(client.call("consume", user, key="message-1")["status"], "allowed")
        again = client.call("consume", user, key="message-1")
        self.assertEqual((again["status"], again["allowed"], again["replayed"]), ("repeated", False, True))
        self.assertEqual((again["used"], self.count(user)), (701, 701))

    @called_by("each")
    def test_reserve_commit_release_and_usage_do_what_their_verbs_do(self, client):
        user = self.subscriber(used=10)
        self.assertEqual(client.call("reserve", user, n=5, key="a", ttl=60)["held"], 5)
        self.assertEqual(client.call("commit", user, n=2, key="a")["used"], 12)
        released = client.call("release", user, key="a")
        self.assertEqual((released["status"], released["released"], released["used"]), ("ok", 2, 10))
        usage = client.call("usage", user, lang="de")
        self.assertEqual((usage["status"], usage["label"], usage["used"]), ("ok", "Premium", 10))
        self.assertIn("Nachrichten", usage["accessible"])
        self.assertEqual(client.call("usage", user, period="2026-03")["period"], "2026-03")
        self.assertEqual(self.failure(client.call, "usage", user, period="2020-01").name, "NotFound")

    @called_by("each")
    def test_sentences_are_in_the_language_that_is_asked_for(self, client):
        user = self.subscriber(used=800)
        self.assertIn("1. April", client.call("consume", user, lang="de")["banner"])
        self.assertIn("1. April", client.call("reserve", user, key="a", lang="de-AT")["banner"])
        for verb in ("consume", "check", "usage"):
            self.assertIn("31. März", client.call(verb, user, lang="de", tz="America/New_York")["banner"])

    @called_by("each")
    def test_an_unlimited_plan_has_no_limit(self, client):
        answer = client.call("consume", self.subscriber("pro"))
        self.assertEqual((answer["allowed"], answer.get("limit"), answer.get("remaining")), (True, None, None))

    @called_by("each")
    def test_fields_of_a_later_service_are_kept_and_quotes_are_read(self, client):
        user, quoted = self.user(), 'She said "hi" \\o/ tier=x'
        escaped = quoted if self.line.is_http else quoted.replace("\\", "\\\\").replace('"', '\\"')
        self.line.faults = [("CONSUME", self.answering(user, used=1, banner=escaped, mood="sunny day"))]
        answer = client.call("consume", user)
        self.assertEqual((answer["banner"], answer["mood"]), (quoted, "sunny day"))
        self.assertEqual((answer["used"], answer.get("tier")), (1, None))

    def test_of_fifty_at_once_the_twenty_that_fit_are_counted(self):
        for driver in self.drivers:
            with self.subTest(client=driver.name):
                user = self.subscriber(used=780)
                client = driver.connect(self.url(driver, self.port(driver.is_http)))
                answers = client.many("consume", user, 50)
                self.assertEqual(sorted(answer["used"] for answer in answers if answer["allowed"]), list(range(781, 801)))
                self.assertEqual(sum(answer["status"] == "blocked" for answer in answers), 30)
                self.assertEqual(self.count(user), 800)
                client.close()


class Retries(ClientCase):
    SHARED = True

    @called_by("each")
    def test_a_message_whose_answers_are_lost_twice_is_counted_once_and_may_be_sent(self, client):
        for key in ({}, {"key": "message-1"}):
            user = self.subscriber(used=700)
            self.line.faults = [("CONSUME", LOST)] * 2
            answer = client.call("consume", user, **key)
            self.assertEqual((answer["status"], answer["replayed"], answer["used"]), ("allowed", False, 701))
            self.assertEqual((self.count(user), self.line.faults), (701, []))
        self.assertEqual(client.call("consume", user, key="message-1")["status"], "repeated", "of an earlier call")

    @called_by("each")
    def test_temporary_errors_are_retried_with_the_same_key(self, client):
        user = self.subscriber(used=700)
        for codes, status in ((("UNAVAILABLE", "OVERLOADED"), "repeated"), (("DRAINING", "UNKNOWN"), "allowed")):
            client.call("consume", user, key=codes[0])
            self.line.behave()
            self.line.faults = [("CONSUME", self.instead(code, "later", retry_ms=5)) for code in codes]
            self.assertEqual(client.call("consume", user, key=codes[0])["status"], status, codes)
            self.assertEqual(self.line.verbs, ["CONSUME"] * 3)
        self.assertEqual(self.count(user), 702)

    @called_by("each")
    def test_a_permanent_error_is_raised_at_once(self, client):
        for method in ("consume", "check", "usage"):
            error = self.failure(client.call, method, "nobody")
            self.assertEqual((error.name, error.code, error.user), ("BadArgument", "BADARG", "nobody"))
            self.assertIn("user must be a UUID", error.message)
        self.assertEqual(self.line.verbs, ["CONSUME", "CHECK", "USAGE"])

    @called_by("each")
    def test_what_only_reads_is_retried(self, client):
        user = self.subscriber(used=700)
        self.line.faults = [("CHECK", LOST), ("USAGE", LOST)]
        self.assertEqual((client.call("check", user)["used"], client.call("usage", user)["used"]), (700, 700))
        self.assertEqual(self.line.faults, [])


    @called_by("each")
    def test_what_something_between_answers_is_not_taken_for_an_answer(self, client):
        user = self.subscriber(used=700)
        if self.line.is_http:
            self.line.faults = [("CONSUME", http_answer(502, "<html>Bad Gateway</html>"))]
            self.assertEqual(client.call("consume", user)["used"], 701)
            self.line.faults = [("CONSUME", http_answer(404, "<html>Not Found</html>"))]
        else:
            self.assertEqual(client.call("consume", user)["used"], 701)
            self.line.faults = [("CONSUME", b"+ALLOWED used=many\r\n")]
        self.assertEqual(self.failure(client.call, "consume", user).code, "MALFORMED")
        self.assertEqual((self.count(user), self.line.faults), (701, []))

    def test_an_answer_with_fields_of_other_types_permits_nothing(self):
        def refuse(client, user, verb, answer):
            if self.line.is_http:
                answer = http_answer(200, json.dumps(answer))
            self.line.faults = [(verb, answer if isinstance(answer, bytes) else f"{answer}\r\n".encode())]
            key = {"key": "a"} if verb in ("RESERVE", "COMMIT", "RELEASE") else {}
            error = self.failure(client.call, verb.lower(), user, **key)
            self.assertEqual((error.name, error.code, self.line.faults), ("HeadroomError", "MALFORMED", []), answer)

        def check(client):
            user = self.subscriber(used=700)
            if self.line.is_http:
                allowed = {"allowed": True, "user": user}
                for allows in ("no", "yes", "true", 0, 1, None, [], {}):
                    for verb in ("CONSUME", "CHECK", "RESERVE", "COMMIT"):
                        refuse(client, user, verb, {**allowed, "allowed": allows})
                for fields in (
                    {"user": None}, {"user": ""}, {"user": 1}, {"used": "1"}, {"used": True}, {"used": 1.5}, {"used": -1}, {"used": None},
                    {"limit": "unlimited"}, {"replayed": "no"}, {"replayed": 1}, {"degraded": "false"}, {"shadow": 1}, {"retry_after": "5"},
                    {"banner": {"text": "Hello"}}, {"tier": 1}, {"plan": None}, {"resets": 0},
                ):  # fmt: skip
                    refuse(client, user, "CONSUME", {**allowed, **fields})
                for answer in ({"user": user}, {"allowed": True}, {}, [], [allowed], "allowed", True, None):
                    refuse(client, user, "CONSUME", answer)
                for verb in ("USAGE", "RELEASE"):
                    refuse(client, user, verb, allowed)
            else:
                for fields in (
                    "used=١", "used=+1", "used=1_0", "used=-1", "replayed=2", "replayed=yes", "degraded=true", "retry_after=soon",
                    "resets=tomorrow", "resets=2026-04-01", "resets=2026-04-01T00:00:00", 'banner="Hel', "used", "used=1  held=1",
                ):  # fmt: skip
                    refuse(client, user, "CONSUME", f"+ALLOWED user={user} {fields}")
                for verb, line in (
                    ("CONSUME", "+ALLOWED"), ("CONSUME", "+OK user={}"), ("CONSUME", "+HELD user={}"), ("CONSUME", "+YES user={}"),
                    ("CONSUME", ":1"), ("RESERVE", "+ALLOWED user={}"), ("CHECK", "+OK user={}"), ("COMMIT", "+OK user={}"),
                    ("RELEASE", "+ALLOWED user={}"), ("USAGE", "+ALLOWED user={}"),
                ):  # fmt: skip
                    refuse(client, user, verb, line.format(user))
            self.assertEqual(self.count(user), 700)

        self.each(check)

    @called_by("each")
    def test_an_error_of_something_between_is_no_error_of_the_service(self, client):
        if not self.line.is_http:
            return
        user = self.subscriber(used=700)
        for problem in ({"code": 404, "detail": "no route"}, {"code": "NOAUTH"}, {"code": "NOAUTH", "detail": {}}, ["NOAUTH"], "no"):
            self.line.faults = [("CONSUME", http_answer(404, json.dumps(problem)))]
            self.assertEqual(self.failure(client.call, "consume", user).code, "MALFORMED", problem)
        for advised in ("Wed, 21 Oct 2026 07:28:00 GMT", "nan", "-5", "inf"):
            problem = json.dumps({"code": "UNAVAILABLE", "detail": "later"})
            self.line.faults = [("CONSUME", http_answer(503, problem, Retry_After=advised))]
            self.assertTrue(client.call("consume", user)["allowed"], advised)
        self.assertEqual(self.count(user), 704)


class Arguments(ClientCase):
    @called_by("each", when_away="allow")
    def test_what_is_no_user_is_a_mistake_and_not_an_outage(self, client):
        for user in (None, "", 5, ".", ".."):
            for method in ("consume", "check", "usage"):
                self.assertEqual(self.failure(client.call, method, user).name, "BadArgument", (method, user))

    @called_by("each")
    def test_uuids_of_python_are_users_and_keys(self, client):
        if isinstance(client, Session):
            user, key = uuid.uuid4(), uuid.uuid4()
            self.assertEqual(client.call("consume", user, key=key)["user"], str(user))
            self.assertEqual(client.call("consume", str(user), key=str(key))["status"], "repeated")
            self.assertEqual(client.hold(user, key=uuid.uuid4())["outcome"]["used"], 2)

    def test_an_address_of_another_kind_is_refused_when_the_client_is_made(self):
        for driver in self.drivers:
            for url in ("ftp://127.0.0.1:6748", "127.0.0.1:6748", "http://"):
                with self.subTest(client=driver.name, url=url), self.assertRaises((Failed, ValueError)) as raised:
                    driver.connect(url)
                self.assertNotEqual(getattr(raised.exception, "name", ""), "Unknown")

    @unittest.skipUnless(shutil.which("node"), "node is not installed")
    def test_a_number_in_place_of_options_is_refused_in_node(self):
        program = (
            f"import {{ Headroom }} from '{ROOT}/clients/node/index.js';"
            "await new Headroom('http://127.0.0.1:2').consume('ada', 5).catch((error) => console.log(error.name, error.message))"
        )
        output = processes.run(["node", "--input-type=module", "-e", program])
        self.assertIn("BadArgument BADARG options are an object", output)


class Errors(ClientCase):
    FLAGS = ("--authentication", "required")

    def test_errors_have_types(self):
        _, chat = token(self, "chat", "chat")
        _, dashboard = token(self, "dashboard", "dashboard")
        _, operator = token(self, "operator", "operator")
        with self.service.connect() as connection:
            wait_until(lambda: connection.send_command(f"AUTH {operator}") == "+OK", "the service has read the tokens")
            self.user_with_plan = self.user()
            self.assertIn("+OK ", connection.send_command(f"SETPLAN {self.user_with_plan} paid"))

        def check(client):
            user = self.user_with_plan
            self.assertEqual(client.call("consume", user, key=f"a-{id(client)}")["status"], "allowed")
            for name, method, options in (
                ("Conflict", "consume", {"key": f"a-{id(client)}", "n": 2}),
                ("NotFound", "commit", {"key": "unknown"}),
                ("BadArgument", "consume", {"n": 0}),
                ("BadArgument", "consume", {"key": ""}),
                ("BadArgument", "consume", {"key": "k" * 129}),
                ("BadArgument", "check", {"lang": "no language"}),
            ):
                error = self.failure(client.call, method, user, **options)
                self.assertEqual((error.name, error.key or None), (name, options.get("key") or error.key or None), options)

        self.each(check, token=chat)
        for name, secret in (("Unauthorized", "headroom_no-such-token"), ("Unauthorized", dashboard)):
            self.each(lambda client: self.assertEqual(self.failure(client.call, "consume", self.user_with_plan).name, name), token=secret)  # noqa: B023
        self.each(lambda client: self.assertEqual(self.failure(client.call, "consume", self.user()).code, "NOAUTH"))

    def test_the_token_may_be_in_the_url(self):
        _, secret = token(self, "backend", "chat")
        for driver in self.drivers:
            for login in (f"{secret}@", f":{secret}@", f"backend:{secret}@"):
                with self.subTest(client=driver.name, login=login.replace(secret, "TOKEN")):
                    url = self.url(driver, self.port(driver.is_http)).replace("://", f"://{login}")
                    client = driver.connect(url)

                    def is_known(client=client):
                        try:
                            return client.call("consume", self.user())["allowed"]
                        except Failed as error:
                            if error.code != "NOAUTH":
                                raise
                            return False

                    wait_until(is_known, "the service has read the token")
                    client.close()


class OverTLS(Case):
    @classmethod
    def serve(cls, *flags, **options):
        cls.authority = Authority()
        certificate, key = cls.authority.server()
        service = super().serve("--tls-certificate", certificate, "--tls-key", key, **options)
        service.tls = cls.authority.client_context()
        return service

    def test_the_certificate_is_checked(self):
        for is_http in (False, True):
            driver = PythonClient(is_http)
            for authority in (self.authority, Authority("Another")):
                with self.subTest(client=driver.name, known=authority is self.authority):
                    scheme, port = ("https", self.service.http_port) if is_http else ("headrooms", self.service.port)
                    trust = {"verify": authority.client_context()} if is_http else {"ssl_ca_certs": authority.certificate}
                    if authority is self.authority:
                        client = driver.connect(f"{scheme}://localhost:{port}", **trust)
                        self.assertTrue(client.call("consume", self.user())["allowed"])
                    else:
                        client = driver.connect(f"{scheme}://localhost:{port}", **SILENT, **trust)
                        # On a slow machine the last attempt may end by its timeout.
                        wait_until(lambda: self.is_refused(client), "the certificate is refused")
                    client.close()

    def is_refused(self, client):
        return "certificate verify failed" in self.failure(client, self.user()).message.lower()

    def failure(self, client, user):
        with self.assertRaises(Failed) as raised:
            client.call("consume", user)
        self.assertEqual(raised.exception.name, "Unavailable", "nothing was sent")
        return raised.exception
