"""Holds of the clients in clients/, and what only those in Python do."""

import asyncio
import os
import signal
import subprocess
import sys

from support import processes
from support.case import called_by
from support.client_case import LIMIT, ClientCase
from support.faulty_port import LOST
from support.packaged_clients import ROOT, PythonClient, headroom_client
from support.waiting import TIMEOUT_SECONDS, wait_until


class Holds(ClientCase):
    SHARED = True

    def state(self, user):
        usage = self.send_command(f"USAGE {user}")
        return self.count(user), " held=" in usage

    @called_by("each")
    def test_a_hold_is_counted_after_its_body(self, client):
        user = self.subscriber(used=10)
        hold = client.hold(user, n=5)
        self.assertEqual((hold["answer"]["status"], hold["answer"]["held"], hold["answer"]["used"]), ("allowed", 5, 10))
        self.assertEqual((hold["outcome"]["used"], hold["error"], self.state(user)), (15, None, (15, False)))

    @called_by("each")
    def test_a_hold_counts_the_amount_that_the_body_sets(self, client):
        user = self.subscriber(used=10)
        for amount, count in ((320, 330), (0, 330), (501, 730)):
            hold = client.hold(user, n=400, amount=amount)
            self.assertEqual((hold["outcome"]["used"], hold["error"]), (count, None), "at most what is held")
            self.assertEqual(self.state(user), (count, False))

    @called_by("each")
    def test_a_hold_is_given_back_if_its_body_raises(self, client):
        user = self.subscriber(used=10)
        hold = client.hold(user, n=5, raises=True)
        self.assertTrue(hold["raised"], "the caller gets the model's error")
        self.assertEqual((hold["outcome"]["released"], self.state(user)), (5, (10, False)))

    @called_by("each")
    def test_a_refused_hold_runs_no_body(self, client):
        user = self.subscriber(used=800)
        refusal = self.failure(client.hold, user)
        self.assertEqual((refusal.name, refusal.answer["status"], refusal.answer["banner"]), ("Blocked", "blocked", LIMIT))
        self.assertEqual(self.state(user), (800, False))

    @called_by("each")
    def test_a_repeated_hold_runs_no_second_body(self, client):
        user = self.subscriber(used=10)
        client.hold(user, key="message-1")
        repetition = self.failure(client.hold, user, key="message-1")
        self.assertEqual((repetition.name, repetition.answer["status"]), ("Repeated", "repeated"))
        self.assertEqual(self.state(user), (11, False))
        client.hold(user, key="message-2", raises=True)
        self.assertEqual(self.failure(client.hold, user, key="message-2").name, "Conflict", "a released key")

    @called_by("each")
    def test_a_hold_whose_answers_are_lost_counts_once(self, client):
        user = self.subscriber(used=10)
        self.line.faults = [("RESERVE", LOST), ("COMMIT", LOST)]
        self.assertEqual(client.hold(user)["error"], None)
        self.assertEqual((self.state(user), self.line.faults), ((11, False), []))
        self.line.faults = [("RESERVE", LOST), ("RELEASE", LOST)]
        self.assertEqual(client.hold(user, raises=True)["error"], None)
        self.assertEqual((self.state(user), self.line.faults), ((11, False), []))

    @called_by("each")
    def test_a_commit_that_the_service_let_through_is_repeated_until_it_counts(self, client):
        user = self.subscriber(used=10)
        self.line.faults = [("COMMIT", self.answering(user, degraded=True))] * 2
        hold = client.hold(user)
        self.assertEqual((hold["error"], hold["outcome"]["degraded"]), (None, True))
        wait_until(lambda: self.state(user) == (11, False), "the message is counted")
        self.assertEqual(self.line.verbs, ["RESERVE"] + ["COMMIT"] * 3)

    @called_by("each")
    def test_a_hold_that_is_over_does_not_take_the_answer_from_the_caller(self, client):
        user = self.subscriber(used=10)
        self.line.faults = [("COMMIT", self.instead("EXPIRED", "the hold has expired"))]
        self.assertEqual(client.hold(user)["error"], "Expired")


class OnlyInPython(ClientCase):
    SHARED = True

    def is_idle(self, user):
        return self.held(user) == 0 and self.count(user) == 10

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

    def test_a_hold_is_given_back_when_its_program_is_interrupted(self):
        user = self.subscriber(used=10)
        # The messages are held before the program has the answer, and with a key of its own it would not give them back yet.
        program = """if True:
            import asyncio, sys, headroom_client

            async def main(url, user):
                async with headroom_client.AsyncHeadroom(url) as headroom:
                    async with headroom.hold(user, 5, key="message-1", ttl=3_600):
                        print("asked", flush=True)
                        await asyncio.Event().wait()

            asyncio.run(main(*sys.argv[1:]))
        """
        address = self.url(PythonClient(False), self.service.port)
        running = processes.start(
            [sys.executable, "-c", program, address, user], stdin=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": str(ROOT / "clients/python")},
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        with running.stdout:
            self.assertEqual(running.stdout.readline(), "asked\n")
        self.assertFalse(self.is_idle(user))
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
        ran = processes.completed(
            [sys.executable, "-c", program, self.url(PythonClient(False), self.service.port), user],
            env={**os.environ, "PYTHONPATH": str(ROOT / "clients/python")},
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
