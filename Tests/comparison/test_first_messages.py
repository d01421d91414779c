"""The load of users in turn, its passes, and the clock of the new months."""

import contextlib
import datetime
import socketserver
import threading
import unittest
from collections import Counter
from pathlib import Path

from comparison import figures, first_messages, generators
from comparison.bench import Bench, Options
from comparison.machine import compiled
from support import processes
from support.processes import Failure

SOURCE = Path(first_messages.__file__).with_name("in_turn.c")


class Server(socketserver.ThreadingTCPServer):
    """Answers PING, and all other requests by their last word; `users` has those of CONSUME in the order of arrival."""

    daemon_threads = True
    # Of all connections at once.
    request_queue_size = 128

    def __init__(self, reply="+ALLOWED used=1"):
        self.reply, self.users = reply, []
        super().__init__(("127.0.0.1", 0), Handler)
        # The interval is that of shutdown().
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def port(self):
        return self.server_address[1]


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        # After a refusal the client closes its connections without reading.
        with contextlib.suppress(ConnectionError):
            for line in self.rfile:
                word = line.decode().rstrip("\r\n")
                if word == "PING":
                    self.wfile.write(b"+PONG\r\n")
                elif word.startswith("00000000-"):
                    self.server.users.append(int(word[24:]))
                    self.wfile.write(f"{self.server.reply}\r\n".encode())


class InTurn(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        program = compiled(SOURCE, Path(processes.directory()) / "in_turn", "-Werror")
        cls.load = generators.InTurn(program)

    def server(self, *arguments):
        server = Server(*arguments)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return server

    def test_each_user_comes_once_in_each_cycle_in_scattered_order(self):
        server = self.server()
        sample = self.load.measure(server.port, 1000, first=5000, cycles=2)
        self.assertEqual(sample["messages"], 2000)
        self.assertEqual(Counter(server.users), dict.fromkeys(range(5000, 6000), 2))
        self.assertNotEqual(server.users[:1000], sorted(server.users[:1000]))

    def test_the_next_run_begins_with_the_same_user(self):
        server = self.server()
        for _ in range(2):
            self.load.measure(server.port, 10, pipeline=1, among=1000)
        self.assertEqual(Counter(Counter(server.users).values()), {2: 10})

    def test_a_part_of_the_users_is_scattered_over_all(self):
        server = self.server()
        self.load.measure(server.port, 100, among=10_000)
        tenths = {user // 1000 for user in server.users}
        self.assertEqual((len(set(server.users)), tenths), (100, set(range(10))))

    def test_a_message_that_is_not_allowed_fails_the_run(self):
        with self.assertRaisesRegex(Failure, "-OVERLOADED the queue is full"):
            self.load.measure(self.server("-OVERLOADED the queue is full").port, 100)

    def test_a_refused_message_is_a_figure_where_it_may_be(self):
        server = self.server("-OVERLOADED the queue is full")
        with self.assertRaisesRegex(Failure, "every message was refused"):
            self.load.measure(server.port, 100, may_refuse=True)
        self.assertEqual(len(server.users), 100)
        self.assertEqual(self.load.measure(self.server().port, 100, may_refuse=True)["refused"], 0)

    def test_a_report_without_figures_is_a_failure(self):
        for out in ("", "{}", "[]"):
            with self.assertRaises(Failure):
                generators.parse_in_turn(out, 10)

    def test_the_rate_is_that_of_all_messages(self):
        out = '{"seconds": 0.5, "refused": 0, "p50_ms": 1.5, "p99_ms": 2.5, "p99_9_ms": 3.5, "max_ms": 4}'
        self.assertEqual(
            generators.parse_in_turn(out, 1000),
            {"per_second": 2000, "p50_ms": 1.5, "p99_ms": 2.5, "p99_9_ms": 3.5, "max_ms": 4, "messages": 1000},
        )


class Passes(unittest.TestCase):
    def bench(self, wanted):
        # Without its servers.
        bench = Bench.__new__(Bench)
        bench.options = Options(names=("cold",), rounds=1, seconds=5, soak_minutes=0, program=Path("headroom"))
        bench.wanted, bench.samples, bench.round = {wanted}, [], 1
        bench._observed = lambda name, load, peer: load()
        return bench

    def test_they_go_on_until_they_took_the_time_and_each_is_prepared(self):
        events = []

        def load():
            events.append("pass")
            return {"per_second": 500, "messages": 1000}

        bench = self.bench("cold")
        bench.by_passes("cold", None, load, lambda: events.append("restart"))
        self.assertEqual(events, ["restart", "pass"] * 3)
        self.assertEqual(bench.samples, [{"name": "cold", "round": 1, "per_second": 500, "messages": 3000}])

    def test_refused_messages_of_all_passes_are_added_up(self):
        passes = [{"per_second": 400, "messages": 1000 - refused, "refused": refused} for refused in (0, 0, 400)]
        sample = figures.combined(passes)
        self.assertEqual((sample["messages"], sample["refused"], sample["per_second"]), (2600, 400, 400))

    def test_what_is_not_wanted_is_neither_prepared_nor_measured(self):
        bench = self.bench("warm")
        bench.by_passes("cold", None, self.fail, self.fail)
        self.assertEqual(bench.samples, [])


class Months(unittest.TestCase):
    def test_they_end_at_midnight_utc(self):
        now = datetime.datetime(2026, 11, 30, 23, 59, tzinfo=datetime.timezone.utc)
        ends = first_messages.ends_of_months(now)
        found = [next(ends).isoformat() for _ in range(4)]
        self.assertEqual(found, [f"{month}-01T00:00:00+00:00" for month in ("2026-12", "2027-01", "2027-02", "2027-03")])
