"""Without a database URL the service runs a PostgreSQL of its own."""

import os
import signal
import subprocess
import unittest

from support import processes, settings
from support.case import LONG_TIMEOUTS, Case
from support.service import Service, command, environment
from support.service_manager import ServiceManager
from support.waiting import TIMEOUT_SECONDS, wait_until
from support.wire import Answer


class PrivateServer(unittest.TestCase):
    """Runs as the user of the tests, also as root, which PostgreSQL itself refuses."""

    def setUp(self):
        self.directory = processes.directory(0o755) + "/data"
        self.started = []
        self.user = Case.user()

    def tearDown(self):
        for service in self.started:
            service.stop()
        # A process left by a failed test would outlive the tests.
        pid = self.postmaster()
        if pid and processes.is_alive(pid):
            os.kill(pid, signal.SIGQUIT)

    def start(self, wait=True, **options):
        service = Service("--data-dir", self.directory, wait=False, env=LONG_TIMEOUTS, **options)
        self.started.append(service)
        return service.ready() if wait else service

    def postmaster(self):
        """The postmaster's process id, from its file."""
        try:
            with open(self.directory + "/postgres/postmaster.pid") as file:
                return int(file.readline())
        except (FileNotFoundError, ValueError):
            # Not there, or being written.
            return None

    def assert_stops(self, pid):
        wait_until(lambda: not processes.is_alive(pid), "the private PostgreSQL has stopped")

    def test_it_starts_counts_stops_and_continues(self):
        service = self.start()
        self.assertEqual(Answer(service.send_command(f"CONSUME {self.user}")).used, 1)
        pid = self.postmaster()
        self.assertTrue(processes.is_alive(pid))
        self.assertNotEqual(os.stat(f"/proc/{pid}").st_uid, 0, "PostgreSQL does not run as root")
        service.signal(signal.SIGTERM)
        self.assertEqual(service.wait(), 0, service.log())
        if "the private PostgreSQL is still shutting down" in service.log():
            self.assert_stops(pid)  # on a slow disk; the service waits 8 s
        self.assertFalse(processes.is_alive(pid), f"it is stopped before the service ends: {service.log()}")
        self.assertEqual(Answer(self.start().send_command(f"CONSUME {self.user}")).used, 2)

    def test_it_has_neither_the_sockets_nor_the_variables_of_the_service_manager(self):
        manager = ServiceManager()
        self.addCleanup(manager.close)
        self.start(manager=manager)
        pid = self.postmaster()
        descriptors = f"/proc/{pid}/fd"
        sockets = {os.stat(each).st_ino for each in manager.descriptors}
        self.assertEqual(sockets & {os.stat(f"{descriptors}/{number}").st_ino for number in os.listdir(descriptors)}, set())
        with open(f"/proc/{pid}/environ") as file:
            self.assertNotRegex(file.read(), "LISTEN_|NOTIFY_SOCKET")

    def test_a_service_that_was_killed_finds_its_postgres_again_with_every_count(self):
        service = self.start()
        for used in range(1, 21):
            self.assertEqual(Answer(service.send_command(f"CONSUME {self.user}")).used, used)
        pid = self.postmaster()
        service.kill()
        self.assertTrue(processes.is_alive(pid), "PostgreSQL survives")
        again = self.start()
        self.assertEqual(self.postmaster(), pid, "adopted, not started anew")
        self.assertEqual(Answer(again.send_command(f"CONSUME {self.user}")).used, 21)
        again.signal(signal.SIGINT)
        self.assertEqual(again.wait(), 0)
        self.assert_stops(pid)

    def test_two_services_share_one_and_the_last_one_stops_it(self):
        one, two = self.start(wait=False), self.start(wait=False)
        one.ready()
        two.ready()
        self.assertEqual(Answer(one.send_command(f"CONSUME {self.user}")).used, 1)
        self.assertEqual(Answer(two.send_command(f"CONSUME {self.user}")).used, 2)
        pid = self.postmaster()
        one.signal(signal.SIGTERM)
        self.assertEqual(one.wait(), 0)
        self.assertTrue(processes.is_alive(pid), "the other one still needs it")
        self.assertEqual(Answer(two.send_command(f"CONSUME {self.user}")).used, 3)
        two.signal(signal.SIGTERM)
        self.assertEqual(two.wait(), 0)
        self.assert_stops(pid)

    def test_a_private_postgres_that_crashes_is_started_again(self):
        service = self.start()
        self.assertEqual(Answer(service.send_command(f"CONSUME {self.user}")).used, 1)
        pid = self.postmaster()
        os.kill(pid, signal.SIGKILL)
        # Its backends continue for a moment, and may answer.
        wait_until(lambda: self.postmaster() not in (None, pid), "another postmaster runs")
        wait_until(lambda: service.send_command(f"CONSUME {self.user}").startswith("+ALLOWED"), "service resumes by itself")
        self.assertGreaterEqual(Answer(service.send_command(f"USAGE {self.user}")).used, 2)

    def test_the_printed_psql_command_opens_the_data(self):
        service = self.start()
        service.send_command(f"CONSUME {self.user} 5")
        (line,) = [line for line in service.log().splitlines() if line.startswith("open the data:")]
        psql = line.removeprefix("open the data:").strip()
        query = f"select message_count from message_usage where user_id = '{self.user}'"
        outcome = processes.completed(["bash", "-c", f'{psql} -X -A -t -c "$1"', "bash", query])
        self.assertEqual((outcome.stdout, outcome.stderr), ("5\n", ""))

    def test_commands_start_it_silently_and_stop_it(self):
        self.start().stop()
        for arguments in (["migrate", "--status"], ["token", "list"], ["product", "list"], ["prune"]):
            with self.subTest(arguments=arguments):
                outcome = command(*arguments, "--data-dir", self.directory)
                self.assertEqual((outcome.returncode, outcome.stderr), (0, ""))
                self.assertNotEqual(outcome.stdout, "")
                self.assertIsNone(self.postmaster())
        outcome = command("token", "list", "--data-dir", self.directory, "--log-level", "info")
        self.assertIn("the private PostgreSQL is ready", outcome.stderr)

    def test_a_command_with_a_closed_reader_stops_it_before_it_ends(self):
        self.start().stop()
        reader, writer = os.pipe()
        os.close(reader)
        outcome = subprocess.run(
            [settings.binary, "migrate", "--status", "--data-dir", self.directory], stdout=writer, stderr=subprocess.PIPE,
            cwd="/", env=environment(), timeout=TIMEOUT_SECONDS,
        )  # fmt: skip
        os.close(writer)
        self.assertEqual((outcome.returncode, outcome.stderr), (-signal.SIGPIPE, b""))
        self.assertIsNone(self.postmaster())

    def test_only_serve_creates_a_database(self):
        user, empty = Case.user(), processes.directory(0o755)
        for arguments in (
            ["token", "list"], ["token", "create", "x", "--scope", "chat"], ["token", "revoke", "1"], ["product", "list"],
            ["product", "map", "stripe", "x", "--plan", "paid"], ["product", "unmap", "stripe", "x"], ["events", "list"],
            ["events", "show", "stripe", "x"], ["events", "replay", "--all"], ["audit", user], ["prune"], ["migrate"],
            ["migrate", "--status"], ["migrate", "--plan"],
        ):  # fmt: skip
            with self.subTest(arguments=arguments):
                outcome = processes.completed([settings.binary, *arguments], cwd=empty, env=environment())
                self.assertEqual((outcome.returncode, outcome.stdout), (69, ""), outcome.stderr)
                self.assertTrue(outcome.stderr.startswith(f"Error: there is no database in {empty}/.headroom; "), outcome.stderr)
                for alternative in ("--data-dir", "HEADROOM_DATA_DIR", "--database-url", "DATABASE_URL", "headroom serve"):
                    self.assertIn(alternative, outcome.stderr)
                self.assertEqual(os.listdir(empty), [])
