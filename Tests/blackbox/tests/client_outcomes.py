"""The clients of clients/ when an answer is lost: none may say that nothing was counted where a message may be, nor leave it held."""

import asyncio
import json
import threading
from types import SimpleNamespace
from unittest import mock

from support.case import called_by
from support.client_case import NOT_NOW, SILENT, ClientCase
from support.faulty_port import LOST, http_answer
from support.packaged_clients import NodeSession, headroom_client
from support.waiting import TIMEOUT_SECONDS, wait_until


class AfterALostAnswer(ClientCase):
    SHARED = True

    @called_by("each")
    def test_an_error_is_an_unknown_outcome_unless_it_is_about_the_key(self, client):
        for code, name in (("INTERNAL", "Unknown"), ("FORBIDDEN", "Unknown"), ("CONFLICT", "Conflict"), ("EXPIRED", "Expired")):
            user = self.subscriber(used=700)
            self.line.faults = [("CONSUME", LOST), ("CONSUME", self.instead(code, "later"))]
            error = self.failure(client.call, "consume", user, key="message-1")
            self.assertEqual((error.name, error.key), (name, "message-1"), code)
            self.assertEqual((self.count(user), self.line.faults), (701, []))
            self.assertEqual(client.call("consume", user, key="message-1")["status"], "repeated")

    def test_a_pause_that_a_busy_machine_prolonged_is_followed_by_no_attempt(self):
        line, now = self.faulty[False], [0.0]
        patient = {"timeout": TIMEOUT_SECONDS, "attempt_timeout": TIMEOUT_SECONDS}
        line.behave()
        line.faults = [("CONSUME", self.instead("UNAVAILABLE", "the database is away", line=line))]

        async def oversleep(_):
            now[0] += 2 * TIMEOUT_SECONDS

        async def consume():
            async with headroom_client.AsyncHeadroom(f"headroom://127.0.0.1:{line.port}", **patient) as client:
                await client.consume(self.user())

        module = headroom_client.client
        clock = mock.patch.object(module, "time", SimpleNamespace(monotonic=lambda: now[0]))
        with clock, mock.patch.object(module.asyncio, "sleep", oversleep), self.assertRaises(headroom_client.Unavailable) as raised:
            asyncio.run(consume())
        self.assertIn("the database is away", str(raised.exception))
        self.assertEqual(line.verbs, ["CONSUME"])

    @called_by("each")
    def test_an_error_after_a_lost_read_is_that_error(self, client):
        self.line.faults = [("USAGE", LOST), ("USAGE", self.instead("INTERNAL", "later"))]
        self.assertEqual(self.failure(client.call, "usage", self.subscriber()).code, "INTERNAL")

    @called_by("each")
    def test_a_hold_without_an_answer_is_given_back(self, client):
        for codes in (("INTERNAL",), ("UNKNOWN", "INTERNAL")):
            user = self.subscriber(used=700)
            self.line.behave()
            # The service holds the messages at the first attempt, and the last one says nothing of it.
            self.line.faults = [("RESERVE", LOST), *(("RESERVE", self.instead(code, "later")) for code in codes)]
            self.assertEqual(self.failure(client.hold, user, ttl=60).name, "Unknown")
            wait_until(lambda: self.held(user) == 0, "the messages are given back")  # noqa: B023
            self.assertEqual(self.count(user), 700)

    @called_by("each")
    def test_a_hold_that_is_answered_without_the_database_is_given_back(self, client):
        user = self.subscriber(used=700)
        self.line.faults = [("RESERVE", LOST), ("RESERVE", self.answering(user, "HELD", degraded=True))]
        held = client.hold(user, ttl=60)
        self.assertEqual((held["answer"]["status"], held["answer"]["degraded"]), ("allowed", True))
        wait_until(lambda: "RELEASE" in self.line.verbs and self.held(user) == 0, "the messages are given back")
        self.assertNotIn("COMMIT", self.line.verbs)
        self.assertEqual(self.count(user), 700)

    @called_by("each", when_away="refuse")
    def test_a_refused_message_that_was_counted_is_given_back_unless_its_key_is_known(self, client):
        for options, count in (({}, 700), ({"key": "message-1"}, 701)):
            user = self.subscriber(used=700)
            self.line.behave()
            self.line.faults = [("CONSUME", LOST), ("CONSUME", self.instead("INTERNAL", "later"))]
            answer = client.call("consume", user, **options)
            self.assertEqual((answer["status"], answer["degraded"], answer["banner"]), ("blocked", True, NOT_NOW))
            wait_until(lambda: self.count(user) == count, "the message is given back, or stays")  # noqa: B023
            self.assertEqual("RELEASE" in self.line.verbs, not options)

    @called_by("each")
    def test_json_of_a_gateway_is_no_answer(self, client):
        if not self.line.is_http:
            return
        for body in (json.dumps({"message": "Endpoint request timed out"}), "null", "[]", '"later"'):
            user = self.subscriber(used=700)
            self.line.faults = [("CONSUME", http_answer(504, body))]
            self.assertEqual(client.call("consume", user)["used"], 701)
            self.line.faults = [("CONSUME", http_answer(403, body))]
            self.assertEqual(self.failure(client.call, "consume", user).code, "MALFORMED", body)


class Keys(ClientCase):
    SHARED = True

    @called_by("each")
    def test_null_is_no_key_in_node(self, client):
        if isinstance(client, NodeSession):
            user = self.subscriber(used=700)
            for work in (lambda: client.call("consume", user, key=None), lambda: client.hold(user, key=None)):
                self.assertEqual(self.failure(work).name, "BadArgument")
            self.assertEqual(self.count(user), 700)


class Closing(ClientCase):
    SHARED = True

    def in_threads(self, check, **options):
        def only_of_threads(client):
            if isinstance(getattr(client, "client", None), headroom_client.Headroom):
                check(client.client)

        self.each(only_of_threads, **options)

    @called_by("in_threads", **SILENT)
    def test_a_thread_that_waits_gets_an_end(self, headroom):
        self.line.is_silent = True
        ended = []

        def consume():
            try:
                headroom.consume(self.user())
            except Exception as error:
                ended.append(type(error).__name__)

        thread = threading.Thread(target=consume, daemon=True)
        thread.start()
        wait_until(lambda: self.line.verbs, "the request is under way")
        headroom.close()
        thread.join(TIMEOUT_SECONDS)
        self.assertEqual(ended, ["Unknown"])

    @called_by("in_threads")
    def test_a_hold_that_is_open_has_an_error_and_the_client_can_be_used_again(self, headroom):
        user = self.subscriber(used=700)
        with self.assertLogs("headroom_client", "WARNING"), headroom.hold(user, ttl=60) as hold:
            headroom.close()
        self.assertEqual((hold.error.code, hold.outcome), ("UNKNOWN", None))
        self.assertEqual((headroom.consume(user).used, self.held(user)), (701, 1))
