"""script/demo starts a service and a chat with a user in every state, and ends every process that it started."""

import http.client
import json
import os
import re
import shlex
import signal
import subprocess
import unittest
import uuid

from support import clones, processes, settings
from support import http as web
from support.nightly import nightly
from support.service import environment
from support.waiting import TIMEOUT_SECONDS, wait_until

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

STATES = {
    # name: plan, state, tier, display, used, limit
    "Silvia": ("paid", "active", "silent", "hidden", 42, 800),
    "Gentiana": ("paid", "active", "gentle", "compact", 680, 800),
    "Promise": ("paid", "active", "prominent", "compact", 776, 800),
    "Max": ("paid", "active", "prominent", "compact", 799, 800),
    "Lim": ("paid", "active", "blocked", "blocked", 800, 800),
    "Triana": ("trial", "trial", "silent", "trial", 59, 100),
    "Usha": ("trial", "trial", "blocked", "blocked", 100, 100),
    "Enda": ("trial", "trial", "blocked", "blocked", 63, 100),
    "Cancela": ("paid", "cancelled", "silent", "hidden", 210, 800),
    "Grace": ("paid", "grace_period", "silent", "hidden", 120, 800),
    "Billie": ("paid", "billing_retry", "blocked", "blocked", 0, 800),
    "Pia": ("paid", "expired", "blocked", "blocked", 0, 800),
    "Rewa": ("paid", "revoked", "blocked", "blocked", 0, 800),
    "Una": ("pro", "active", "silent", "hidden", 1234, None),
    "Frida": ("free", "free", "blocked", "blocked", 0, 0),
    "Lara": ("paid", "active", "silent", "hidden", 49, 800),
    "Nova": ("trial", "trial", "silent", "trial", 0, 100),
}

REFUSED = {
    # name: the reason, and the page's button that restores access
    "Lim": ("limit_reached", {"action": "subscribe", "plan": "pro"}),
    "Usha": ("trial_limit_reached", {"action": "subscribe", "plan": "paid"}),
    "Enda": ("trial_ended", {"action": "subscribe", "plan": "paid"}),
    "Billie": ("billing_retry", {"action": "pay"}),
    "Pia": ("expired", {"action": "subscribe", "plan": "paid"}),
    "Rewa": ("revoked", {"action": "subscribe", "plan": "paid"}),
    "Frida": ("no_subscription", {"action": "subscribe", "plan": "paid"}),
}


def family(directory):
    """The processes with the demo's directory in their command line, and their children; PostgreSQL is a daemon."""
    parents, commands = {}, {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/stat") as file:
                parents[int(entry)] = int(file.read().rsplit(")", 1)[1].split()[1])
            with open(f"/proc/{entry}/cmdline") as file:
                commands[int(entry)] = file.read().replace("\0", " ").strip()
        except (FileNotFoundError, ProcessLookupError):
            pass  # it has ended meanwhile
    roots = {pid for pid, command in commands.items() if directory in command}

    def belongs(pid):
        while pid in parents and pid not in roots:
            pid = parents[pid]
        return pid in roots

    return {pid: command for pid, command in commands.items() if belongs(pid)}


class Demo:
    def __init__(self, **variables):
        self.directory = processes.directory()
        self.files = [self.directory + "/stdout", self.directory + "/stderr"]
        with open(self.files[0], "wb") as out, open(self.files[1], "wb") as err:
            self.process = processes.start(
                [ROOT + "/script/demo"], stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd="/",
                env=environment(HEADROOM_BINARY=settings.binary, **variables),
            )  # fmt: skip
        wait_until(lambda: "Ctrl-C" in self.output() or self.process.poll() is not None, "the demo runs", seconds=3 * TIMEOUT_SECONDS)
        self.chat = self.address("chat: +http://127.0.0.1:")
        self.people = dict(re.findall(r"^(\w+) +http://127\.0\.0\.1:\d+/chat/(\S{36}) ", self.output(), re.MULTILINE))

    def output(self, file=0):
        with open(self.files[file]) as opened:
            return opened.read()

    def address(self, label):
        match = re.search(label + r"(\d+)", self.output())
        if not match:
            raise AssertionError(f"{label} is not printed; the demo printed\n{self.output()}\n{self.output(1)}")
        return int(match[1])

    @property
    def own_directory(self):
        return re.search(r"host=(/tmp/headroom-demo-\w+)/", self.output())[1]

    def get(self, path):
        return web.request(self.chat, "GET", path)

    def usage(self, name):
        return self.get(f"/users/{self.people[name]}").json["usage"]

    def send(self, name, text="Hello"):
        """A message; its events by name, the last one of each."""
        answer = web.request(self.chat, "POST", f"/users/{self.people[name]}/messages", {"id": str(uuid.uuid4()), "text": text})
        pairs = re.findall(r"^event: (\w+)\ndata: (.*)$", answer.text, re.MULTILINE)
        return {event: json.loads(data) for event, data in pairs}

    def change(self, name, body):
        return web.request(self.chat, "POST", f"/users/{self.people[name]}/subscription", body)


class RunningDemo(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.demo = Demo()

    @classmethod
    def tearDownClass(cls):
        processes.stop(cls.demo.process)


class SeededUsers(RunningDemo):
    def test_every_user_is_in_the_printed_state(self):
        self.assertEqual(list(self.demo.people), list(STATES), self.demo.output())
        fields = ("plan", "state", "tier", "display", "used", "limit")
        for name, expected in STATES.items():
            with self.subTest(name):
                usage = self.demo.usage(name)
                self.assertEqual(tuple(usage[field] for field in fields), expected)
        triana = self.demo.usage("Triana")
        self.assertEqual((triana["day"], triana["days"], triana["label"]), (2, 3, "Trial — Day 2 of 3"))
        large = self.demo.usage("Lara")["models"]["large"]
        self.assertEqual((large["model_remaining"], large["tier"], large["display"]), (1, "prominent", "compact"))
        self.assertIn("active until", self.demo.usage("Cancela")["notice"])
        self.assertIn("payment", self.demo.usage("Grace")["notice"])

    def test_the_start_prints_no_warnings(self):
        lines = self.demo.output(1).splitlines()
        self.assertEqual([line for line in lines if not line.startswith(("demo: ", "program: "))], [])

    def test_its_addresses_open(self):
        self.assertEqual(self.demo.address("notifications: +http://127.0.0.1:"), self.demo.chat)
        self.assertIn("Gentiana", self.demo.get("/").text)
        self.assertEqual(self.demo.get(f"/chat/{self.demo.people['Lim']}").status, 200)
        dashboard = self.demo.address("dashboard: +http://127.0.0.1:")
        self.assertEqual(web.request(dashboard, "GET", "/dashboard").status, 200)
        psql = re.search(r"^database: +(psql .*)$", self.demo.output(), re.MULTILINE)[1]
        result = processes.completed(
            [*shlex.split(psql), "-XAtc", f"select sum(message_count) from message_usage where user_id = '{self.demo.people['Una']}'"],
            env=environment(),
        )  # fmt: skip
        self.assertEqual(result.stdout, "1234\n", result.stderr)


@nightly("`SeededUsers` starts the demo")
class SubscribingAgain(RunningDemo):
    def test_refused_users_can_send_after_subscribing_and_a_cancelled_subscription_resumes(self):
        for name, (reason, cure) in REFUSED.items():
            with self.subTest(name):
                refused = self.demo.send(name)
                self.assertEqual(set(refused), {"blocked"})
                self.assertEqual(refused["blocked"]["reason"], reason)
                changed = self.demo.change(name, cure)
                self.assertEqual(changed.status, 204, changed.text)
                sent = self.demo.send(name)
                self.assertEqual(set(sent), {"held", "piece", "sent"})
                self.assertEqual(sent["sent"]["usage"]["state"], "active")
        for action, state in (("cancel", "cancelled"), ("resume", "active")):
            changed = self.demo.change("Silvia", {"action": action})
            self.assertEqual(changed.status, 204, changed.text)
            self.assertEqual(self.demo.usage("Silvia")["state"], state)
        self.assertEqual(self.demo.change("Grace", {"action": "cancel"}).status, 204)
        self.assertEqual(self.demo.usage("Grace")["state"], "grace_period")
        self.assertEqual(self.demo.change("Grace", {"action": "pay"}).status, 204)
        self.assertEqual(self.demo.usage("Grace")["state"], "active")


@nightly("`SeededUsers` starts the demo")
class Notified(RunningDemo):
    def notified(self):
        """Newest first: type, user, tier, messages counted or held, and limit of each notification that the chat has."""
        def row(kind, data):
            return kind, data["user"], data["tier"], data["used"] + data["held"], data["limit"]

        listed = [each["body"] for each in self.demo.get("/notifications").json["notifications"]]
        return [row(each["type"], each["data"]) for each in listed]

    def test_the_chat_lists_who_has_reached_a_tier(self):
        created = {
            (f"usage.{'blocked' if tier == 'blocked' else 'crossed'}", self.demo.people[name], tier, used, limit)
            for name, (_, state, tier, _, used, limit) in STATES.items()
            if tier != "silent" and state in ("active", "trial") and name != "Enda"
        }  # fmt: skip
        # Of the model Large.
        created.add(("usage.crossed", self.demo.people["Lara"], "prominent", 49, 50))
        self.assertEqual(len(created), 6)
        wait_until(lambda: set(self.notified()) == created, lambda: f"{created}; it has {self.notified()}")
        self.assertIn("sent", self.demo.send("Max"))
        # The chat holds the last message until it is answered, and Headroom may notify meanwhile.
        last = ("usage.blocked", self.demo.people["Max"], "blocked", 800, 800)
        wait_until(lambda: self.notified()[0] == last, lambda: f"{last}; it has {self.notified()}")
        self.assertEqual(len(self.notified()), 7)


@nightly("`SeededUsers` starts the demo")
class Ending(unittest.TestCase):
    def started(self):
        demo = Demo()
        members = family(demo.own_directory)
        for part in ("headroom serve", "chat-backend", "postgres"):
            self.assertTrue(any(part in command for command in members.values()), members)
        return demo, members

    def assert_everything_ended(self, demo, members):
        """No process, including PostgreSQL, and no directory."""
        left = {pid: command for pid, command in members.items() if processes.is_alive(pid)}
        self.assertEqual(left, {})
        self.assertFalse(os.path.exists(demo.own_directory))

    def test_ctrl_c_stops_everything_with_an_open_page_and_an_answer_under_way(self):
        demo, members = self.started()
        page = http.client.HTTPConnection("127.0.0.1", demo.chat, timeout=TIMEOUT_SECONDS)
        page.request("GET", f"/users/{demo.people['Silvia']}/changes")
        self.assertEqual(page.getresponse().readline(), b"retry: 1000\n")
        answer = http.client.HTTPConnection("127.0.0.1", demo.chat, timeout=TIMEOUT_SECONDS)
        answer.request(
            "POST", f"/users/{demo.people['Silvia']}/messages", json.dumps({"id": str(uuid.uuid4()), "text": "Tell me"}),
            {"Content-Type": "application/json"},
        )  # fmt: skip
        response = answer.getresponse()
        self.assertEqual([response.readline() for _ in range(3)], [b"retry: 1000\n", b"\n", b"event: held\n"])
        # Both connections stay open.
        demo.process.send_signal(signal.SIGINT)
        self.assertEqual(demo.process.wait(TIMEOUT_SECONDS), 0, demo.output(1))
        self.assert_everything_ended(demo, members)
        page.close()
        answer.close()

    def test_settings_of_another_service_are_ignored(self):
        elsewhere = "postgresql://127.0.0.1:1/production"
        demo = Demo(
            DATABASE_URL=elsewhere, HEADROOM_DATABASE_URL=elsewhere, PGHOST="127.0.0.1",
            HEADROOM_TOKEN="headroom_of-another-service",
        )  # fmt: skip
        self.assertEqual(demo.usage("Una")["used"], 1234)
        self.assertEqual(processes.stop(demo.process), 0)

    def test_when_the_service_ends_by_itself_the_demo_ends_with_an_error(self):
        demo, members = self.started()
        service = next(pid for pid, command in members.items() if "headroom serve" in command)
        os.kill(service, signal.SIGTERM)
        self.assertEqual(demo.process.wait(TIMEOUT_SECONDS), 1)
        self.assertIn("ended by itself", demo.output(1))
        self.assert_everything_ended(demo, members)

    def test_when_the_service_is_killed_its_database_is_stopped_too(self):
        demo, members = self.started()
        service = next(pid for pid, command in members.items() if "headroom serve" in command)
        os.kill(service, signal.SIGKILL)
        self.assertEqual(demo.process.wait(TIMEOUT_SECONDS), 1)
        self.assert_everything_ended(demo, members)

    def test_sigterm_during_the_build_stops_the_build_too(self):
        directory = processes.directory()
        with open(directory + "/swift", "w") as file:
            file.write(
                "#!/bin/bash\n"
                'if [[ $1 == --version ]]; then echo "Swift version 99.0"; exit; fi\n'
                f"echo $$ >>{directory}/started\n"
                f"bash -c 'echo $$ >>{directory}/started; exec sleep 600'\n"
            )
        os.chmod(directory + "/swift", 0o755)
        demo = processes.start(
            [clones.make() / "script/demo"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd="/",
            env=environment(PATH=directory + ":" + os.environ["PATH"]),
        )  # fmt: skip

        def started():
            try:
                with open(directory + "/started") as file:
                    return [int(line) for line in file]
            except FileNotFoundError:
                return []

        wait_until(lambda: len(started()) == 2 or demo.poll() is not None, "it builds")
        self.assertEqual([processes.is_alive(pid) for pid in started()], [True, True])
        demo.send_signal(signal.SIGTERM)
        output, _ = demo.communicate(timeout=TIMEOUT_SECONDS)
        self.assertEqual((demo.returncode, output), (0, b""))
        self.assertEqual([processes.is_alive(pid) for pid in started()], [False, False])

    def test_missing_programs_are_an_error(self):
        result = processes.completed([ROOT + "/script/demo"], cwd="/", env=environment(HEADROOM_BINARY="/nonexistent/headroom"))
        self.assertEqual(result.returncode, 1)
        self.assertIn("program: HEADROOM_BINARY=/nonexistent/headroom is no file", result.stderr)
        self.assertEqual(result.stdout, "")
