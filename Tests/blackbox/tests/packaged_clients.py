"""The clients of clients/python and clients/node against the service: each case for each client, over TCP and over HTTP."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys

from support import processes
from support.case import MID_MONTH, Case
from support.certificates import Authority
from support.faulty_port import LOST, FaultyPort, http_answer
from support.packaged_clients import ROOT, Failed, PythonClient, drivers, headroom_client
from support.printed import blocks
from support.tokens import token
from support.waiting import TIMEOUT_SECONDS, wait_until

LIMIT = "We've had a lot of great conversations this month! Your next session refreshes on April 1."
LET_THROUGH = "I couldn't check your usage right now — don't worry, you can keep chatting."
NOT_NOW = "I couldn't check your usage right now. Let's try again in a moment."
NOBODY = {"seconds": 0.5, "attempt_seconds": 0.5}
SILENT = {"seconds": 1.5, "attempt_seconds": 0.5}
"""Timeouts for a port where nobody listens, which each attempt learns at once, and for a service that never answers."""


class ClientCase(Case):
    """Runs a check for each client, which is connected through a port that can lose answers."""

    CLOCK = MID_MONTH

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.drivers = drivers()
        cls.faulty = {is_http: FaultyPort(cls.port(is_http), is_http) for is_http in (False, True)}

    @classmethod
    def tearDownClass(cls):
        for port in cls.faulty.values():
            port.close()
        for driver in cls.drivers:
            if hasattr(driver, "stop"):
                driver.stop()
        super().tearDownClass()

    @classmethod
    def port(cls, is_http):
        return cls.service.http_port if is_http else cls.service.port

    def each(self, check, **options):
        for driver in self.drivers:
            with self.subTest(client=driver.name):
                self.line = self.faulty[driver.is_http]
                self.line.behave()
                client = driver.connect(self.url(driver, self.line.port), **options)
                check(client)
                client.close()
        if shutil.which("node") is None:
            self.skipTest("the client for Node.js was left out: node is not installed; script/bootstrap --test installs it on Debian")

    @staticmethod
    def url(driver, port):
        return f"{'http' if driver.is_http else 'headroom'}://127.0.0.1:{port}"

    def failure(self, work, *arguments, **options):
        with self.assertRaises(Failed) as raised:
            work(*arguments, **options)
        return raised.exception

    def instead(self, code, text="", retry_ms=None):
        """An error in place of the next answer."""
        if not self.line.is_http:
            advice = f"retry_ms={retry_ms} " if retry_ms else ""
            return f"-{code} {advice}{text}\r\n".encode()
        status = {"UNKNOWN": 504, "EXPIRED": 410}.get(code, 503)
        return http_answer(status, json.dumps({"status": status, "code": code, "detail": text}))

    def answering(self, user, **fields):
        """An answer with these fields in place of the next one."""
        if self.line.is_http:
            return http_answer(200, json.dumps({"allowed": True, "user": user, **fields}))
        words = [f'{name}="{value}"' if isinstance(value, str) else f"{name}={int(value)}" for name, value in fields.items()]
        return f"+ALLOWED user={user} {' '.join(words)}\r\n".encode()


class Answers(ClientCase):
    SHARED = True

    def test_a_refusal_has_the_words_the_tier_and_when_to_come_back(self):
        def check(client):
            user = self.subscriber(used=800)
            for method in ("consume", "check"):
                answer = client.call(method, user)
                self.assertEqual((answer["status"], answer["allowed"], answer["degraded"]), ("blocked", False, False))
                self.assertEqual((answer["tier"], answer["reason"], answer["banner"]), ("blocked", "limit_reached", LIMIT))
                self.assertEqual((answer["used"], answer["limit"], answer["remaining"]), (800, 800, 0))
                self.assertEqual(answer["resets"], "2026-04-01T00:00:00Z")
                self.assertEqual(answer["retry_after"], (16 * 24 + 14) * 3600 + 1800)
            self.assertEqual(self.count(user), 800)

        self.each(check)

    def test_each_call_without_a_key_counts(self):
        def check(client):
            user = self.subscriber(used=700)
            self.assertEqual([client.call("consume", user)["used"] for _ in range(2)], [701, 702])
            answer = client.call("consume", user, n=3)
            self.assertEqual((answer["status"], answer["allowed"], answer["used"]), ("allowed", True, 705))
            self.assertEqual(answer["banner"], "You have 95 conversations left this month")
            self.assertEqual(self.count(user), 705)

        self.each(check)

    def test_a_key_counts_once_and_a_repetition_is_not_allowed(self):
        def check(client):
            user = self.subscriber(used=700)
            self.assertEqual(client.call("consume", user, key="message-1")["status"], "allowed")
            again = client.call("consume", user, key="message-1")
            self.assertEqual((again["status"], again["allowed"], again["replayed"]), ("repeated", False, True))
            self.assertEqual((again["used"], self.count(user)), (701, 701))

        self.each(check)

    def test_reserve_commit_release_and_usage_do_what_their_verbs_do(self):
        def check(client):
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

        self.each(check)

    def test_sentences_are_in_the_language_that_is_asked_for(self):
        def check(client):
            user = self.subscriber(used=800)
            self.assertIn("1. April", client.call("consume", user, lang="de")["banner"])
            self.assertIn("1. April", client.call("reserve", user, key="a", lang="de-AT")["banner"])

        self.each(check)

    def test_an_unlimited_plan_has_no_limit(self):
        def check(client):
            answer = client.call("consume", self.subscriber("pro"))
            self.assertEqual((answer["allowed"], answer.get("limit"), answer.get("remaining")), (True, None, None))

        self.each(check)

    def test_fields_of_a_later_service_are_kept_and_quotes_are_read(self):
        def check(client):
            user, quoted = self.user(), 'She said "hi" \\o/ tier=x'
            escaped = quoted if self.line.is_http else quoted.replace("\\", "\\\\").replace('"', '\\"')
            self.line.faults = [("CONSUME", self.answering(user, used=1, banner=escaped, mood="sunny day"))]
            answer = client.call("consume", user)
            self.assertEqual((answer["banner"], answer["mood"]), (quoted, "sunny day"))
            self.assertEqual((answer["used"], answer.get("tier")), (1, None))

        self.each(check)

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

    def test_a_message_whose_answers_are_lost_twice_is_counted_once_and_may_be_sent(self):
        def check(client):
            for key in ({}, {"key": "message-1"}):
                user = self.subscriber(used=700)
                self.line.faults = [("CONSUME", LOST)] * 2
                answer = client.call("consume", user, **key)
                self.assertEqual((answer["status"], answer["replayed"], answer["used"]), ("allowed", False, 701))
                self.assertEqual((self.count(user), self.line.faults), (701, []))
            self.assertEqual(client.call("consume", user, key="message-1")["status"], "repeated", "of an earlier call")

        self.each(check)

    def test_temporary_errors_are_retried_with_the_same_key(self):
        def check(client):
            user = self.subscriber(used=700)
            for codes, status in ((("UNAVAILABLE", "OVERLOADED"), "repeated"), (("DRAINING", "UNKNOWN"), "allowed")):
                client.call("consume", user, key=codes[0])
                self.line.behave()
                self.line.faults = [("CONSUME", self.instead(code, "later", retry_ms=5)) for code in codes]
                self.assertEqual(client.call("consume", user, key=codes[0])["status"], status, codes)
                self.assertEqual(self.line.verbs, ["CONSUME"] * 3)
            self.assertEqual(self.count(user), 702)

        self.each(check)

    def test_a_permanent_error_is_raised_at_once(self):
        def check(client):
            for method in ("consume", "check", "usage"):
                error = self.failure(client.call, method, "nobody")
                self.assertEqual((error.name, error.code, error.user), ("BadArgument", "BADARG", "nobody"))
                self.assertIn("user must be a UUID", error.message)
            self.assertEqual(self.line.verbs, ["CONSUME", "CHECK", "USAGE"])

        self.each(check)

    def test_what_only_reads_is_retried(self):
        def check(client):
            user = self.subscriber(used=700)
            self.line.faults = [("CHECK", LOST), ("USAGE", LOST)]
            self.assertEqual((client.call("check", user)["used"], client.call("usage", user)["used"]), (700, 700))
            self.assertEqual(self.line.faults, [])

        self.each(check)


    def test_what_something_between_answers_is_not_taken_for_an_answer(self):
        def check(client):
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

        self.each(check)


class Holds(ClientCase):
    SHARED = True

    def state(self, user):
        usage = self.send_command(f"USAGE {user}")
        return self.count(user), " held=" in usage

    def test_a_hold_is_counted_after_its_body(self):
        def check(client):
            user = self.subscriber(used=10)
            hold = client.hold(user, n=5)
            self.assertEqual((hold["answer"]["status"], hold["answer"]["held"], hold["answer"]["used"]), ("allowed", 5, 10))
            self.assertEqual((hold["outcome"]["used"], hold["error"], self.state(user)), (15, None, (15, False)))

        self.each(check)

    def test_a_hold_counts_the_amount_that_the_body_sets(self):
        def check(client):
            user = self.subscriber(used=10)
            for amount, count in ((320, 330), (0, 330), (501, 730)):
                hold = client.hold(user, n=400, amount=amount)
                self.assertEqual((hold["outcome"]["used"], hold["error"]), (count, None), "at most what is held")
                self.assertEqual(self.state(user), (count, False))

        self.each(check)

    def test_a_hold_is_given_back_if_its_body_raises(self):
        def check(client):
            user = self.subscriber(used=10)
            hold = client.hold(user, n=5, raises=True)
            self.assertTrue(hold["raised"], "the caller gets the model's error")
            self.assertEqual((hold["outcome"]["released"], self.state(user)), (5, (10, False)))

        self.each(check)

    def test_a_refused_hold_runs_no_body(self):
        def check(client):
            user = self.subscriber(used=800)
            refusal = self.failure(client.hold, user)
            self.assertEqual((refusal.name, refusal.answer["status"], refusal.answer["banner"]), ("Blocked", "blocked", LIMIT))
            self.assertEqual(self.state(user), (800, False))

        self.each(check)

    def test_a_repeated_hold_runs_no_second_body(self):
        def check(client):
            user = self.subscriber(used=10)
            client.hold(user, key="message-1")
            repetition = self.failure(client.hold, user, key="message-1")
            self.assertEqual((repetition.name, repetition.answer["status"]), ("Repeated", "repeated"))
            self.assertEqual(self.state(user), (11, False))
            client.hold(user, key="message-2", raises=True)
            self.assertEqual(self.failure(client.hold, user, key="message-2").name, "Conflict", "a released key")

        self.each(check)

    def test_a_hold_whose_answers_are_lost_counts_once(self):
        def check(client):
            user = self.subscriber(used=10)
            self.line.faults = [("RESERVE", LOST), ("COMMIT", LOST)]
            self.assertEqual(client.hold(user)["error"], None)
            self.assertEqual((self.state(user), self.line.faults), ((11, False), []))
            self.line.faults = [("RESERVE", LOST), ("RELEASE", LOST)]
            self.assertEqual(client.hold(user, raises=True)["error"], None)
            self.assertEqual((self.state(user), self.line.faults), ((11, False), []))

        self.each(check)

    def test_a_commit_that_the_service_let_through_is_repeated_until_it_counts(self):
        def check(client):
            user = self.subscriber(used=10)
            self.line.faults = [("COMMIT", self.answering(user, degraded=True))] * 2
            hold = client.hold(user)
            self.assertEqual((hold["error"], hold["outcome"]["degraded"]), (None, True))
            wait_until(lambda: self.state(user) == (11, False), "the message is counted")
            self.assertEqual(self.line.verbs, ["RESERVE"] + ["COMMIT"] * 3)

        self.each(check)

    def test_a_hold_that_is_over_does_not_take_the_answer_from_the_caller(self):
        def check(client):
            user = self.subscriber(used=10)
            self.line.faults = [("COMMIT", self.instead("EXPIRED", "the hold has expired"))]
            self.assertEqual(client.hold(user)["error"], "Expired")

        self.each(check)


class OnlyInPython(ClientCase):
    SHARED = True

    def is_idle(self, user):
        return " held=" not in self.send_command(f"USAGE {user}") and self.count(user) == 10

    def test_a_stream_that_is_closed_gives_its_messages_back(self):
        user = self.subscriber(used=10)
        for is_http in (False, True):
            with headroom_client.Headroom(self.url(PythonClient(is_http), self.port(is_http)), timeout=TIMEOUT_SECONDS) as headroom:

                def stream(headroom=headroom):
                    with headroom.hold(user):
                        yield "a word"
                        yield "never reached"

                words = stream()
                self.assertEqual(next(words), "a word")
                self.assertFalse(self.is_idle(user))
                words.close()
                self.assertTrue(self.is_idle(user))

    def test_a_task_that_is_cancelled_gives_its_messages_back(self):
        user = self.subscriber(used=10)

        async def cancel_in_the_body(url):
            async with headroom_client.AsyncHeadroom(url, timeout=TIMEOUT_SECONDS) as headroom:
                is_held = asyncio.Event()

                async def ask():
                    async with headroom.hold(user):
                        is_held.set()
                        await asyncio.Event().wait()

                task = asyncio.create_task(ask())
                await is_held.wait()
                task.cancel()
                await asyncio.wait({task})
                return task.cancelled()

        for is_http in (False, True):
            url = self.url(PythonClient(is_http), self.port(is_http))
            self.assertTrue(asyncio.run(cancel_in_the_body(url)))
            self.assertTrue(self.is_idle(user))

    def test_the_printed_hold_is_given_back_when_the_user_stops_it(self):
        user = self.subscriber(used=10)
        program = next(block.text for block in blocks("clients/python/README.md") if "hold.amount" in block.text)
        address = self.url(PythonClient(False), self.service.port)
        running = processes.start(
            [sys.executable, "-c", program, user, "message-1", "What is a quota? " * 1_000], stdin=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": str(ROOT / "clients/python"), "HEADROOM_URL": address}, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        wait_until(lambda: not self.is_idle(user), "a hold")
        running.send_signal(signal.SIGINT)
        self.assertNotEqual(running.wait(TIMEOUT_SECONDS), 0)
        self.assertTrue(self.is_idle(user))

    def test_a_client_works_in_the_child_of_a_fork_and_after_it_was_closed(self):
        user = self.subscriber(used=10)
        program = """if True:
            import os, sys, headroom_client
            headroom = headroom_client.Headroom(sys.argv[1], timeout=600)
            headroom.consume(sys.argv[2])
            child = os.fork()
            headroom.consume(sys.argv[2])
            if child == 0:
                os._exit(0)
            _, status = os.waitpid(child, 0)
            headroom.close()
            headroom.consume(sys.argv[2])
            sys.exit(status)
        """
        ran = subprocess.run(
            [sys.executable, "-c", program, self.url(PythonClient(False), self.service.port), user],
            env={**os.environ, "PYTHONPATH": str(ROOT / "clients/python")}, timeout=TIMEOUT_SECONDS, capture_output=True, text=True,
        )  # fmt: skip
        self.assertEqual((ran.returncode, self.count(user)), (0, 14), ran.stderr)

    def test_a_callback_that_calls_the_client_gets_an_error_and_does_not_wait_for_itself(self):
        def calls_it(error):
            return headroom.usage(error.user)

        headroom = headroom_client.Headroom(f"headroom://127.0.0.1:{processes.free_port()}", timeout=0.1, when_away=calls_it)
        with self.assertRaisesRegex(RuntimeError, "cannot call it"):
            headroom.consume(self.user())

    def test_an_address_without_a_scheme_is_refused_at_once(self):
        for kind in (headroom_client.Headroom, headroom_client.AsyncHeadroom):
            with self.assertRaisesRegex(ValueError, "must begin with headroom://"):
                kind("127.0.0.1:6747")


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


class ServiceAway(ClientCase):
    SHARED = True

    def away(self, check, **options):
        """With a port where nobody listens."""
        for driver in self.drivers:
            with self.subTest(client=driver.name):
                client = driver.connect(self.url(driver, processes.free_port()), **{**NOBODY, **options})
                check(client)
                client.close()

    def test_without_a_service_calls_raise(self):
        def check(client):
            keyed = [(method, {"key": "a"}) for method in ("reserve", "commit", "release")]
            for method, options in [("consume", {}), ("check", {}), ("usage", {}), *keyed]:
                error = self.failure(client.call, method, self.user(), **options)
                self.assertEqual((error.name, error.code), ("Unavailable", "UNREACHABLE"), "nothing can have been counted")
            self.assertEqual(self.failure(client.hold, self.user()).name, "Unavailable")

        self.away(check)

    def test_a_message_is_let_through(self):
        def check(client):
            user = self.user()
            for answer in (client.call("consume", user), client.call("check", user), client.call("reserve", user, key="a")):
                self.assertEqual((answer["status"], answer["allowed"], answer["degraded"]), ("allowed", True, True))
                self.assertEqual((answer["user"], answer["banner"]), (user, LET_THROUGH))
            for raises in (False, True):
                hold = client.hold(user, raises=raises)
                self.assertEqual((hold["answer"]["degraded"], hold["outcome"], hold["raised"]), (True, None, raises))
            self.assertEqual(self.failure(client.call, "usage", user).name, "Unavailable")

        self.away(check, when_away="allow")

    def test_a_message_is_refused_kindly(self):
        def check(client):
            answer = client.call("consume", self.user())
            self.assertEqual((answer["status"], answer["degraded"], answer["banner"]), ("blocked", True, NOT_NOW))
            refusal = self.failure(client.hold, self.user())
            self.assertEqual((refusal.name, refusal.answer["banner"]), ("Blocked", NOT_NOW))

        self.away(check, when_away="refuse")

    def test_a_callback_decides_with_the_error(self):
        def check(client):
            user = self.user()
            answer = client.call("consume", user)
            self.assertEqual((answer["banner"], answer["degraded"]), (f"own words for {user}", True))

        self.away(check, when_away="own words")

        def check_unknown(client):
            self.line.is_silent = True
            self.assertEqual(client.call("consume", self.user())["status"], "blocked", "it may be counted")

        self.each(check_unknown, when_away="the code", **SILENT)

    def test_a_refusal_by_the_service_is_no_matter_of_the_callback(self):
        def check(client):
            self.assertEqual(client.call("consume", self.subscriber(used=800))["banner"], LIMIT)
            self.assertEqual(self.failure(client.call, "consume", "nobody").name, "BadArgument")

        self.each(check, when_away="allow")

    def test_a_service_that_never_answers_is_given_up_and_the_key_is_in_the_error(self):
        def check(client):
            self.line.is_silent = True
            for options in ({}, {"key": "message-1"}):
                error = self.failure(client.call, "consume", self.user(), **options)
                self.assertEqual((error.name, error.code), ("Unknown", "UNKNOWN"))
                self.assertEqual(error.key, options.get("key") or error.key)
                self.assertTrue(error.key)
            self.assertEqual(self.failure(client.call, "check", self.user()).name, "Unavailable", "it only reads")
            self.assertGreater(len(self.line.verbs), 3, "several attempts")

        self.each(check, **SILENT)

    def test_a_hold_of_an_unknown_outcome_is_given_back_when_the_service_answers_again(self):
        def check(client):
            user = self.subscriber(used=10)
            self.line.faults = [("RESERVE", LOST)] * 1_000
            self.assertEqual(self.failure(client.hold, user).name, "Unknown")
            self.line.faults = []
            wait_until(lambda: " held=" not in self.send_command(f"USAGE {user}"), "it is given back")
            self.assertIn("RELEASE", self.line.verbs)

        self.each(check, **SILENT)


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
                    client = driver.connect(f"{scheme}://localhost:{port}", **SILENT, **trust)
                    if authority is self.authority:
                        client = driver.connect(f"{scheme}://localhost:{port}", **trust)
                        self.assertTrue(client.call("consume", self.user())["allowed"])
                    else:
                        self.assertIn("certificate verify failed", self.failure(client, self.user()).message.lower())
                    client.close()

    def failure(self, client, user):
        with self.assertRaises(Failed) as raised:
            client.call("consume", user)
        self.assertEqual(raised.exception.name, "Unavailable", "nothing was sent")
        return raised.exception
