"""`headroom bench` reports the counts that are in the table."""

import json
import os
import re
import signal
import subprocess
import threading

from support import processes, settings
from support.case import Case
from support.service import command, environment
from support.waiting import TIMEOUT_SECONDS


class Load(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # As docs/benchmarking.md says: no user of the load reaches a limit.
        cls.psql.run("insert into headroom.plans (plan, label, cycle, allowance) values ('roomy', 'Roomy', 'monthly', 1000000000)")
        cls.psql.run(
            "insert into headroom.subscribers (bucket, user_id)"
            " select headroom.bucket_of(users.user_id), users.user_id from ("
            "select ('00000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid as user_id from generate_series(0, 999) as n"
            ") as users"
        )
        cls.psql.run(
            "insert into headroom.subscriptions (bucket, user_id, original_transaction_id, plan, started_at)"
            " select bucket, user_id, 'operator', 'roomy', now() from headroom.subscribers"
        )

    def counted(self):
        return self.psql.number("select coalesce(sum(message_count), 0) from message_usage")

    def bench(self, *options, target=None, status=0):
        """The report, and the increase of the counts."""
        before = self.counted()
        target = target or f"127.0.0.1:{self.service.port}"
        done = command("bench", "--json", "--target", target, "--users", "1000", *options)
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertEqual(len(done.stdout.splitlines()), 1, done.stdout)
        return json.loads(done.stdout), self.counted() - before

    def test_a_closed_loop_counts_exactly_what_it_reports(self):
        report, grown = self.bench("--requests", "20000", "--warmup", "0", "--pipeline", "16", "--distribution", "zipf")
        self.assertEqual((report["requests"], report["replies"], report["allowed"]), (20_000, 20_000, 20_000))
        self.assertEqual(grown, 20_000)
        self.assertEqual((report["mode"], report["errors"], report["problems"]), ("closed", {}, []))
        self.assertEqual(sum(second["replies"] for second in report["series"]), 20_000)

    def test_an_open_loop_counts_exactly_what_it_reports_with_its_warm_up(self):
        options = ("--rate", "2000", "--duration", "1", "--warmup", "0.5", "--threads", "2", "--messages", "3", "--connections", "10")
        report, grown = self.bench(*options)
        self.assertEqual(report["allowed"], report["requests"])
        self.assertGreater(report["warmup_allowed"], 0)
        self.assertEqual(grown, 3 * (report["allowed"] + report["warmup_allowed"]))
        self.assertEqual((report["mode"], report["arrivals"]), ("open", "poisson"))
        self.assertIn("p99_9", report["send_lag_ms"])

    def test_keys_are_new_in_every_run_also_for_the_same_seed(self):
        options = ("--requests", "1000", "--warmup", "0", "--key-share", "0.5", "--seed", "7")
        for _ in range(2):
            report, grown = self.bench(*options)
            self.assertEqual((report["seed"], report["allowed"], grown), (7, 1_000, 1_000))
        keys = self.psql.number("select count(*) from headroom.message_keys")
        self.assertGreater(keys, 800)

    def test_reservations_are_committed(self):
        report, grown = self.bench("--requests", "1000", "--warmup", "0", "--verb", "reserve", "--connections", "5")
        self.assertEqual((report["allowed"], report["other"], report["errors"]), (grown, grown, {}))
        # The last request of a connection may have been a reservation.
        self.assertIn(report["requests"], range(1_000, 1_006))

    def test_nothing_stays_reserved_when_a_pipelined_run_ends(self):
        report, grown = self.bench("--duration", "1", "--warmup", "0.2", "--verb", "reserve", "--pipeline", "16")
        self.assertEqual((report["allowed"] + report["warmup_allowed"], report["errors"]), (grown, {}))
        self.assertEqual(report["replies"] + report["warmup_replies"], 2 * grown)
        self.assertEqual(self.psql.number("select sum(held) from message_usage"), 0)
        self.assertEqual(self.psql.number("select count(*) from headroom.message_keys where status = 'h'"), 0)

    def test_reading_verbs_count_nothing(self):
        for verb, kind in (("check", "allowed"), ("usage", "other")):
            with self.subTest(verb=verb):
                report, grown = self.bench("--requests", "500", "--warmup", "0", "--verb", verb, "--quiet")
                self.assertEqual((report[kind], grown), (500, 0))

    def test_refusals_and_errors_are_reported_by_code(self):
        self.psql.run("insert into headroom.plans (plan, label, cycle, allowance) values ('ten', 'Ten', 'monthly', 10)")
        prefix = self.user()[:24]
        self.assertIn("+OK ", self.send_command(f"SETPLAN {prefix}000000000000 ten"))
        report, grown = self.bench("--requests", "64", "--warmup", "0", "--distribution", "one", "--user-prefix", prefix)
        self.assertEqual((report["allowed"], report["blocked"], grown), (10, 54, 10))
        report, _ = self.bench("--requests", "64", "--warmup", "0", "--command", "CONSUME nobody")
        self.assertEqual((report["errors"], report["verb"]), ({"BADARG": 64}, None))

    def test_idle_connections_are_there_while_the_load_runs(self):
        before = int(self.service.info()["connections_total"])
        self.bench("--requests", "100", "--warmup", "0", "--idle-connections", "50", "--connections", "8")
        # The query itself is one more.
        self.assertEqual(int(self.service.info()["connections_total"]), before + 58 + 1)

    def test_too_few_connections_are_reported_with_the_services_error(self):
        small = self.serve("--connections-maximum", "10")
        done = command("bench", "--target", f"127.0.0.1:{small.port}", "--connections", "11", "--duration", "1")
        self.assertEqual(done.returncode, 1)
        self.assertIn("-OVERLOADED", done.stderr)

    def test_an_unused_address_is_reported(self):
        done = command("bench", "--target", f"127.0.0.1:{processes.free_port()}", "--duration", "1")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("cannot be reached", done.stderr)

    def test_ctrl_c_ends_early_and_shows_what_was_measured(self):
        before = self.counted()
        process = processes.start(
            [settings.binary, "bench", "--target", f"127.0.0.1:{self.service.port}", "--users", "1000", "--json", "--duration", "600",
             "--warmup", "0", "--connections", "2"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(),
        )  # fmt: skip
        watchdog = threading.Timer(TIMEOUT_SECONDS, process.kill)
        watchdog.start()
        for line in process.stderr:
            if line.startswith("1 s "):
                break
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate()
        watchdog.cancel()
        self.assertEqual(process.returncode, 0)
        report = json.loads(output)
        self.assertGreaterEqual(report["seconds"], 1)
        self.assertEqual(self.counted() - before, report["allowed"])

    def test_every_option_is_documented(self):
        page = os.path.join(os.path.dirname(__file__), "../../../docs/benchmarking.md")
        with open(page) as file:
            text = file.read()
        options = set(re.findall(r"^  (--[a-z-]+)", command("bench", "--help").stdout, re.MULTILINE)) - {"--version"}
        self.assertGreater(len(options), 15)
        for option in options:
            self.assertRegex(text, rf"(?m)^\| `{option}[ `]")

    def test_bad_options_are_refused_with_what_is_allowed(self):
        for options, error in (
            (("--connections", "0"), "--connections must be 1 to 20000"),
            (("--connections", "20001"), "--connections must be 1 to 20000"),
            (("--pipeline", "1025"), "--pipeline must be 1 to 1024"),
            (("--pipeline", "2", "--rate", "10"), "--pipeline is for a closed loop"),
            (("--arrivals", "even"), "add --rate"),
            (("--arrivals", "odd", "--rate", "1"), "--arrivals must be poisson or even"),
            (("--rate", "0"), "--rate must be 0.1 to"),
            (("--rate", "nan"), "--rate must be 0.1 to"),
            (("--duration", "1", "--requests", "1"), "not both"),
            (("--requests", "0"), "--requests must be 1 to"),
            (("--users", "0"), "--users must be 1 to 10000000"),
            (("--user-prefix", "x"), "first 24 characters of a UUID"),
            (("--distribution", "normal"), "uniform, zipf"),
            (("--verb", "setplan"), "--verb must be"),
            (("--verb", "check", "--key-share", "0.5"), "--key-share is for --verb consume"),
            (("--key-share", "1.5"), "--key-share must be 0.0 to 1.0"),
            (("--verb", "usage", "--messages", "2"), "--messages is not for"),
            (("--command", "PING", "--verb", "check"), "--command replaces"),
            (("--command", " "), "--command has no words"),
            (("--target", "nowhere"), "--target must be host:port"),
            (("--threads", "3", "--connections", "2"), "--threads must not be more"),
            (("--idle-connections", "-1"), "idle-connections"),
        ):
            with self.subTest(options=options):
                done = command("bench", *options)
                self.assertEqual((done.returncode, done.stdout), (64, ""), done.stderr)
                self.assertIn(error, done.stderr)
